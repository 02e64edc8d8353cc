"use strict";
// Signs in without leaving the page. The token that waits for the second factor lives in `pending` and nowhere else.
(() => {
  const byId = (id) => document.getElementById(id);
  const first = byId("password-form");
  if (!first) return;
  const second = byId("code-form");
  const error = byId("error");
  const sso = byId("sso");
  let pending = null;

  const say = (text) => {
    error.textContent = text;
    error.hidden = !text;
  };

  const step = (token, who) => {
    pending = token;
    first.hidden = token !== null;
    second.hidden = token === null;
    if (sso) sso.hidden = token !== null;
    byId("who").textContent = who;
    byId("code").value = "";
    byId("password").value = "";
    byId(token === null ? "password" : "code").focus();
  };

  const post = async (form, path, body) => {
    const button = form.querySelector("button");
    button.disabled = true;
    say("");
    try {
      const answer = await fetch(path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return { status: answer.status, body: await answer.json() };
    } catch {
      return { status: 0, body: {} };
    } finally {
      button.disabled = false;
    }
  };

  first.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = { password: byId("password").value };
    const email = byId("email").value.trim();
    if (email) body.email = email;
    const answer = await post(first, "/api/auth/login", body);
    if (answer.status === 200 && answer.body.requires2fa) {
      step(answer.body.tempToken, answer.body.user.email);
    } else if (answer.status === 200) {
      location.reload();
    } else {
      const wrong = answer.status === 401 || answer.status === 400;
      say(
        wrong
          ? "Login failed. Check your email and password."
          : answer.status === 429
            ? "Too many attempts. Try again shortly."
            : "Login failed. Please try again.",
      );
      byId("password").select();
    }
  });

  second.addEventListener("submit", async (event) => {
    event.preventDefault();
    const answer = await post(second, "/api/auth/login/2fa", { tempToken: pending, code: byId("code").value });
    if (answer.status === 200) {
      location.reload();
      return;
    }
    const reason = answer.body.error ? answer.body.error.message : "";
    say(
      answer.status === 429
        ? "Too many attempts. Try again shortly."
        : answer.status !== 401
          ? "Verification failed. Please try again."
          : reason === "invalid code"
            ? "Invalid authentication code."
            : "Your sign-in attempt expired. Start over to try again.",
    );
    byId("code").select();
  });

  byId("over").addEventListener("click", () => {
    say("");
    step(null, "");
  });
})();
