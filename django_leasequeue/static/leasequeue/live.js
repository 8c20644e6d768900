/* Refreshes the live parts of a page every few seconds; without it the page is as it was sent. */
"use strict";
(() => {
    const SECONDS = 5;
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

    const refresh = async (part) => {
        const answer = await fetch(part.dataset.leasequeueLive, { redirect: "error" });
        if (!answer.ok) {
            throw new Error(answer.statusText);
        }
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        if (on && !inUse(part)) {
            replace(part, fresh.body.childNodes);
        }
    };

    const turn = async () => {
        if (on && !document.hidden) {
            const parts = document.querySelectorAll("[data-leasequeue-live]");
            for (const part of parts) {
                if (!inUse(part)) {
                    /* A server that is away, or a session that ended: what is shown says its time. */
                    await refresh(part).catch(() => undefined);
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
