// Carries a bulk run on while its page is open. Without this, its button does the same.
"use strict";
(function () {
  const form = document.getElementById("bulk-go");
  const place = document.getElementById("bulk-progress");
  if (!form || !place) return;

  const goesOn = () => Boolean(place.querySelector("[data-goes-on='1']"));

  async function turn() {
    let answer;
    try {
      answer = await fetch(form.action, {
        method: "POST",
        body: new FormData(form),
        headers: { "X-Requested-With": "fetch" },
        credentials: "same-origin",
      });
    } catch (error) {
      setTimeout(turn, 5000);  // a network that is away for a moment
      return;
    }
    if (!answer.ok || answer.redirected) return;  // logged out, say: the button tells why
    place.innerHTML = await answer.text();
    if (goesOn()) {
      setTimeout(turn, 1000);
    } else {
      window.location.reload();
    }
  }

  if (goesOn()) setTimeout(turn, 500);
})();
