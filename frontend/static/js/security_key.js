// Security keys: the button named by data-security-key starts what allauth's library offers, with the page's data.
const LABELS = {
  NotAllowedError: "The browser gave up, or you said no. Try again.",
  InvalidStateError: "This key is registered already.",
  SecurityError: "Security keys need HTTPS, or localhost, and a host name instead of an IP address.",
};

function tell(button, error) {
  const said = document.getElementById("security-key-problem");
  said.textContent = LABELS[error.name] || "This browser could not use the key.";
  said.hidden = false;
  button.disabled = false;
}

const button = document.querySelector("[data-security-key]");
if (button) {
  const ids = { credential: button.dataset.credential, data: "js_data" };
  ids[button.dataset.securityKey === "addForm" ? "add" : "authenticate"] = button.id;
  document.addEventListener("allauth.error", (event) => {
    event.preventDefault();
    tell(button, event.detail.exception);
  });
  if (window.PublicKeyCredential) window.allauth.webauthn.forms[button.dataset.securityKey]({ ids });
  else button.addEventListener("click", () => tell(button, { name: "SecurityError" }));
}
