// Forms: asked about, sent once, with the token of this moment, and what was typed outlives a session that ended meanwhile.

const KEPT = "typed";
const NEVER_KEPT = "[type=hidden], [type=password], [type=file], [name=private_key], [name*=secret]";
const AGAIN_AFTER_MS = 10000;
const USER = document.body.dataset.user; // what one person typed is not shown to the next one in this tab

// Signing in from another tab changes the token; the form of this page still holds the old one.
function tokenNow() {
  return /(?:^|; )(?:__Host-csrf|benchhub_csrf)=([^;]+)/.exec(document.cookie)?.[1];
}

function tell(text, link) {
  const place = document.getElementById("messages");
  if (!place || place.textContent.trim().startsWith(text)) return; // parts that are fetched every few seconds tell it each time
  const said = document.createElement("div");
  said.className = "note note-warn";
  said.append(Object.assign(document.createElement("div"), { textContent: text }));
  if (link) said.firstChild.append(" ", link);
  place.replaceChildren(said);
  said.scrollIntoView({ block: "nearest" });
}

function keep(form) {
  const fields = {};
  for (const field of form.elements) {
    if (!field.name || field.matches(`button, fieldset, ${NEVER_KEPT}`)) continue;
    fields[field.name] ??= [];
    if (field.matches("select")) fields[field.name].push(...[...field.selectedOptions].map((one) => one.value));
    else if (!field.matches("[type=checkbox], [type=radio]") || field.checked) fields[field.name].push(field.value);
  }
  try {
    const page = location.pathname + location.search;
    sessionStorage.setItem(KEPT, JSON.stringify({ user: USER, page, form: form.getAttribute("action"), fields }));
  } catch {
    // This browser keeps nothing.
  }
}

// Each field once: those that come with a choice, as the parameters of a recipe do, are filled when they are there.
function fill(form, fields, filled) {
  for (const field of form.elements) {
    const values = fields[field.name];
    if (!values || filled.has(field) || field.matches(NEVER_KEPT)) continue;
    filled.add(field);
    if (field.matches("[type=checkbox], [type=radio]")) field.checked = values.includes(field.value);
    else if (field.matches("select")) for (const one of field.options) one.selected = values.includes(one.value);
    else field.value = values[0] ?? "";
  }
}

// Only on the way back from the sign-in page: after any other answer the form was received.
function restore() {
  let kept = null;
  try {
    kept = JSON.parse(sessionStorage.getItem(KEPT));
    sessionStorage.removeItem(KEPT);
  } catch {
    return;
  }
  if (
    kept?.user !== USER ||
    kept?.page !== location.pathname + location.search ||
    !document.referrer.includes("/accounts/")
  )
    return;
  const form = [...document.forms].find((one) => one.getAttribute("action") === kept.form);
  if (!form) return;
  const filled = new WeakSet();
  fill(form, kept.fields, filled);
  for (let box = form.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
  const again = new AbortController();
  document.addEventListener("htmx:afterSettle", () => fill(form, kept.fields, filled), { signal: again.signal });
  setTimeout(() => again.abort(), AGAIN_AFTER_MS);
  for (const field of [...form.elements]) {
    if (field.matches("select[hx-get], [hx-get] select")) field.dispatchEvent(new Event("change", { bubbles: true }));
  }
  tell("You had been signed out: nothing was sent. What you had typed is here again.");
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit-on-change]")) event.target.form.requestSubmit();
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  const question = event.submitter?.dataset.confirm ?? form.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
  if (event.defaultPrevented || form.getAttribute("method") !== "post") return;
  if (form.ariaBusy === "true") {
    event.preventDefault();
    return;
  }
  form.ariaBusy = "true";
  setTimeout(() => (form.ariaBusy = null), AGAIN_AFTER_MS);
  const token = form.elements.namedItem("csrfmiddlewaretoken");
  if (token && tokenNow()) token.value = tokenNow();
  if (USER) keep(form);
});

addEventListener("pageshow", () => {
  for (const form of document.forms) form.ariaBusy = null;
});

document.addEventListener("htmx:configRequest", (event) => {
  if (tokenNow()) event.detail.headers["X-CSRFToken"] = tokenNow();
});

// What somebody chose in a part of a form while that part was being fetched anew stays chosen.
const sent = new WeakMap();
const valuesIn = (part) =>
  new Map(
    [...part.querySelectorAll("select[name], input[name]:not([type=hidden], [type=file]), textarea[name]")].map(
      (one) => [
        `${one.name} ${one.matches("[type=checkbox], [type=radio]") ? one.value : ""}`,
        one.matches("select")
          ? JSON.stringify([...one.selectedOptions].map((option) => option.value))
          : JSON.stringify(one.matches("[type=checkbox], [type=radio]") ? one.checked : one.value),
      ],
    ),
  );

document.addEventListener("htmx:beforeRequest", (event) => {
  const { target, xhr } = event.detail;
  if (target?.closest?.("form[method=post]")) sent.set(xhr, valuesIn(target));
});

document.addEventListener("htmx:beforeSwap", (event) => {
  const { target, xhr } = event.detail;
  const before = sent.get(xhr);
  if (!before) return;
  const typed = [...valuesIn(target)].filter(([key, value]) => before.has(key) && before.get(key) !== value);
  sent.set(xhr, new Map(typed));
});

document.addEventListener("htmx:afterSettle", (event) => {
  const typed = sent.get(event.detail.xhr);
  const form = event.target.closest("form");
  if (!typed?.size || !form) return;
  sent.delete(event.detail.xhr);
  for (const field of [...form.elements]) {
    const box = field.matches("[type=checkbox], [type=radio]");
    const value = typed.get(`${field.name} ${box ? field.value : ""}`);
    if (value === undefined) continue;
    const wanted = JSON.parse(value);
    if (box) field.checked = wanted;
    else if (field.matches("select")) for (const one of field.options) one.selected = wanted.includes(one.value);
    else field.value = wanted;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }
});

document.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status !== 401) return;
  const link = Object.assign(document.createElement("a"), {
    href: "/accounts/login/",
    target: "_blank",
    textContent: "Sign in",
  });
  tell("You have been signed out. Sign in in another tab, then go on here: what you have typed stays.", link);
});

document.addEventListener("htmx:sendError", () => tell("BenchHub does not answer. What you see may be out of date."));

// A new schedule keeps the clock of whoever makes it, unless another one is chosen.
for (const zones of document.querySelectorAll("select[data-browser-zone]")) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if ([...zones.options].some((option) => option.value === own)) zones.value = own;
}

restore();
