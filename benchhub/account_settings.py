"""The settings of accounts, sign-in and the second factor that no installation changes (docs/signin.md)."""

from __future__ import annotations

AUTHENTICATION_BACKENDS = [
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_ADAPTER = "benchhub.accounts.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*", "password2*"]
ACCOUNT_CHANGE_EMAIL = True  # one address; a new one counts once it is confirmed
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[BenchHub] "
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False  # else anybody could have mails sent to anybody
_FORMS = "frontend.pages.account.forms."
ACCOUNT_FORMS = {
    "login": _FORMS + "SignInForm",
    "signup": _FORMS + "SignUpForm",
    "change_password": _FORMS + "ChangePasswordForm",
    "set_password": _FORMS + "SetPasswordForm",
    "reset_password": _FORMS + "ForgottenPasswordForm",
    "reset_password_from_key": _FORMS + "NewPasswordForm",
    "add_email": _FORMS + "MailAddressForm",
    "reauthenticate": _FORMS + "PasswordAgainForm",
}
SOCIALACCOUNT_FORMS = {"signup": _FORMS + "ProviderSignUpForm"}
MFA_FORMS = {
    "authenticate": _FORMS + "CodeForm",
    "reauthenticate": _FORMS + "CodeAgainForm",
    "activate_totp": _FORMS + "AppForm",
    "add_webauthn": _FORMS + "SecurityKeyForm",
    "authenticate_webauthn": _FORMS + "SecurityKeyAnswerForm",
    "reauthenticate_webauthn": _FORMS + "SecurityKeyAgainForm",
}
ACCOUNT_RATE_LIMITS = {"login_failed": "20/m/ip,5/5m/key"}
MFA_ADAPTER = "benchhub.accounts.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_TOTP_ISSUER = "BenchHub"
MFA_TOTP_TOLERANCE = 1  # 30 s: clocks of phones
MFA_ALLOW_UNVERIFIED_EMAIL = True  # accounts that an admin made have no address
SOCIALACCOUNT_ADAPTER = "benchhub.accounts.SocialAccountAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
