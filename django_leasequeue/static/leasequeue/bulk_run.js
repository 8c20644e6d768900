// Carries a bulk run on while the page is open that followed the start, or the button: without
// this, the button does the same. A page that was opened to look only looks, again and again.
"use strict";
(function () {
  const FIRST = 2000;
  const LONGEST = 60000;
  const form = document.getElementById("bulk-go");
  const place = document.getElementById("bulk-progress");
  const trouble = document.getElementById("bulk-trouble");
  if (!place || !trouble) return;

  const carries = Boolean(form && form.dataset.carries);
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
    const options = { headers: { "X-Requested-With": "fetch" }, credentials: "same-origin" };
    const answer = carries
      ? await fetch(form.action, { method: "POST", body: new FormData(form), ...options })
      : await fetch(place.dataset.progress, options);
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
      setTimeout(turn, carries ? 1000 : 5000);
    } else {
      window.location.reload();
    }
  }

  if (goesOn()) setTimeout(turn, carries ? 500 : 5000);
})();
