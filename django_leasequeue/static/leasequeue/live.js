/* Refreshes the live parts of a page every few seconds; without it the page is as it was sent.
   Where that does not succeed, what is shown stays, and it is said that it is old. */
"use strict";
(() => {
    const SECONDS = 5;
    const trouble = document.querySelector("[data-leasequeue-trouble]");
    const switches = document.querySelectorAll("[data-leasequeue-switch]");
    let on = true;

    const scrollers = (part) => part.querySelectorAll(".leasequeue-scroll");

    /* Whoever is about to do something there is not to have it replaced under the hands. */
    const inUse = (part) => {
        const focused = document.activeElement;
        const selection = document.getSelection();
        return (
            (part.contains(focused) && !focused.matches(".leasequeue-scroll")) ||
            part.querySelector("details[open]") !== null ||
            (selection.type === "Range" && part.contains(selection.anchorNode))
        );
    };

    /* What is scrolled sideways stays so, and keeps the focus of the keys that scroll it. */
    const replace = (part, nodes) => {
        const places = Array.from(scrollers(part), (one) => [
            one.scrollLeft,
            one === document.activeElement,
        ]);
        part.replaceChildren(...nodes);
        scrollers(part).forEach((one, number) => {
            const [left, focused] = places[number] || [0, false];
            one.scrollLeft = left;
            if (focused) {
                one.focus({ preventScroll: true });
            }
        });
    };

    /* Said once, not with every turn: a screen reader would repeat it. */
    const say = (why) => {
        const text = (why && trouble?.dataset[why]) || "";
        if (trouble && trouble.textContent !== text) {
            trouble.textContent = text;
        }
    };

    /* A redirect leads to the login page: the session has ended. */
    const refresh = async (part) => {
        const answer = await fetch(part.dataset.leasequeueLive, { redirect: "manual" });
        if (answer.type === "opaqueredirect" || (answer.status >= 400 && answer.status < 500)) {
            return "refused";
        }
        if (!answer.ok) {
            return "away";
        }
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        if (on && !inUse(part)) {
            replace(part, fresh.body.childNodes);
        }
        return "";
    };

    const turn = async () => {
        if (on && !document.hidden) {
            const parts = document.querySelectorAll("[data-leasequeue-live]");
            for (const part of parts) {
                if (!inUse(part)) {
                    const why = await refresh(part).catch(() => "away");
                    say(why);
                }
            }
        }
        setTimeout(turn, SECONDS * 1000);
    };

    for (const button of switches) {
        button.hidden = false;
        button.addEventListener("click", () => {
            on = !on;
            button.textContent = on
                ? button.dataset.leasequeueOn
                : button.dataset.leasequeueOff;
        });
    }
    setTimeout(turn, SECONDS * 1000);
})();
