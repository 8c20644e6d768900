// Carries a bulk run on while the page is open that followed the start, or the button. One that
// was opened to look only shows. Without this, the button does the same.
"use strict";
(function () {
  const FIRST = 2000;
  const LONGEST = 60000;
  const form = document.getElementById("bulk-go");
  const place = document.getElementById("bulk-progress");
  const trouble = document.getElementById("bulk-trouble");
  if (!form || !place || !trouble) return;

  let pause = FIRST;
  const goesOn = () => Boolean(place.querySelector("[data-goes-on='1']"));

  function say(text) {
    trouble.textContent = text;
    trouble.hidden = !text;
  }

  // A server or a network that is away comes back: later and later, never for good.
  function again() {
    say(trouble.dataset.away);
    setTimeout(turn, pause);
    pause = Math.min(LONGEST, pause * 2);
  }

  async function ask() {
    const answer = await fetch(form.action, {
      method: "POST",
      body: new FormData(form),
      headers: { "X-Requested-With": "fetch" },
      credentials: "same-origin",
    });
    return [answer, answer.ok ? await answer.text() : ""];
  }

  async function turn() {
    let answer, text;
    try {
      [answer, text] = await ask();
    } catch (error) {
      again();
      return;
    }
    if (answer.status >= 500 || answer.status === 429) {
      again();
      return;
    }
    if (!answer.ok || answer.redirected) {
      say(trouble.dataset.refused);  // logged out, say: the page then tells why
      return;
    }
    say("");
    pause = FIRST;
    place.innerHTML = text;
    if (goesOn()) {
      setTimeout(turn, 1000);
    } else {
      window.location.reload();
    }
  }

  if (goesOn() && form.dataset.carries) setTimeout(turn, 500);
})();
