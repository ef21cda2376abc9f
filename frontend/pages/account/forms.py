"""The forms of sign-in and account in the product's own words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from allauth.account import forms as account
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base import forms as mfa
from allauth.mfa.totp import forms as totp
from allauth.mfa.webauthn import forms as webauthn
from allauth.socialaccount import forms as social
from django import forms
from django.core.exceptions import ValidationError

from experiments.registry.teams.first_account import PASSWORD_RULE

LABELS = {
    "Login": "User name or mail address",
    "Remember Me": "Stay signed in for 14 days in this browser",
    "Username": "User name",
    "Email": "Mail address",
    "Password (again)": "Password once more",
    "Current Password": "Current password",
    "New Password": "New password",
    "New Password (again)": "New password once more",
    "Authenticator code": "Code that the app shows",
}
"""The library's label = ours."""


class InOurWords:
    """Labels as everywhere else, and no placeholders that say them once more."""

    fields: dict[str, Any]

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        for field in self.fields.values():
            field.label = LABELS.get(str(field.label), field.label)
            field.widget.attrs.pop("placeholder", None)
            if "<ul>" in str(field.help_text):
                field.help_text = PASSWORD_RULE


class SignInForm(InOurWords, account.LoginForm):  # type: ignore[misc]  # allauth is untyped
    """Name or address, and password."""

    def user_credentials(self) -> dict[str, str]:
        """One name, which may be an address: given as both, a known address would be tried twice and take longer."""
        return {"username": self.cleaned_data["login"], "password": self.cleaned_data["password"]}


class SignUpForm(InOurWords, account.SignupForm):  # type: ignore[misc]
    pass


class ChangePasswordForm(InOurWords, account.ChangePasswordForm):  # type: ignore[misc]
    pass


class SetPasswordForm(InOurWords, account.SetPasswordForm):  # type: ignore[misc]
    pass


class ForgottenPasswordForm(InOurWords, account.ResetPasswordForm):  # type: ignore[misc]
    pass


class NewPasswordForm(InOurWords, account.ResetPasswordKeyForm):  # type: ignore[misc]
    pass


class MailAddressForm(InOurWords, account.AddEmailForm):  # type: ignore[misc]
    pass


class PasswordAgainForm(InOurWords, account.ReauthenticateForm):  # type: ignore[misc]
    pass


class ProviderSignUpForm(InOurWords, social.SignupForm):  # type: ignore[misc]
    pass


class CodeForm(InOurWords, mfa.AuthenticateForm):  # type: ignore[misc]
    pass


class CodeAgainForm(InOurWords, mfa.ReauthenticateForm):  # type: ignore[misc]
    pass


class AppForm(InOurWords, totp.ActivateTOTPForm):  # type: ignore[misc]
    pass


class _Credential(forms.JSONField):
    def to_python(self, value: Any) -> Any:
        try:
            return super().to_python(value)
        except RecursionError as error:
            raise ValidationError(self.error_messages["invalid"], code="invalid") from error

    def bound_data(self, data: Any, initial: Any) -> Any:
        """What the form shows when it is asked for again: nothing, as the key answers each time anew."""
        return initial


class FromSecurityKey(InOurWords):
    """What the browser hands on from the key. Anybody can send anything instead, which then is a wrong code."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.fields["credential"] = _Credential(widget=forms.HiddenInput)

    def clean(self) -> Any:
        with _as_a_wrong_code():
            return super().clean()  # type: ignore[misc]

    def clean_credential(self) -> Any:
        with _as_a_wrong_code():
            read = getattr(super(), "clean_credential", None)
            return read() if read else self.cleaned_data["credential"]  # type: ignore[attr-defined]


@contextmanager
def _as_a_wrong_code() -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise get_adapter().validation_error("incorrect_code") from error


class SecurityKeyForm(FromSecurityKey, webauthn.AddWebAuthnForm):  # type: ignore[misc]
    pass


class SecurityKeyAnswerForm(FromSecurityKey, webauthn.AuthenticateWebAuthnForm):  # type: ignore[misc]
    pass


class SecurityKeyAgainForm(FromSecurityKey, webauthn.ReauthenticateWebAuthnForm):  # type: ignore[misc]
    pass
