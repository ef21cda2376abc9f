"""What a person is told when nobody could log in to a host, or what came of the login was no session. Pure."""

from __future__ import annotations

from agents.base.errors import ConnectError, HostKeyRefused
from agents.remote.address import Address, HostKey

_LAST_OWN_STATUS = 125  # above it a shell tells what it could not start, and signals


def unreachable(where: str, exc: Exception, *, within_s: float) -> ConnectError:
    """The error of a connection that did not come about; `within_s` is how long it was tried."""
    if isinstance(exc, TimeoutError):
        reason, hint = f"no answer within {within_s:g} s", "Is the host up, and the way to it open in firewalls?"
    elif isinstance(exc, ConnectionRefusedError):
        reason, hint = "the connection was refused", "Is sshd running, and on this port?"
    else:
        reason, hint = str(exc) or type(exc).__name__, "Check the address, the port and the network."
    return ConnectError(f"{where} cannot be reached: {reason}.", hint=hint)


def another_key(address: Address, exc: Exception) -> HostKeyRefused:
    """The error of a host that showed another key than its pinned one: nobody logged in."""
    return HostKeyRefused(
        f"{address} did not prove to be the approved host with key {HostKey(address.host_key)}: {exc}",
        host=address.name,
        hint="If it was installed anew, test its connection on its page: both keys then stand side by side; "
        "compare the fingerprint on its console and approve it. Else another machine answers in its place: find out "
        "which before going on.",
    )


def login_refused(address: Address) -> ConnectError:
    """The error of a host that does not take BenchHub's key for this login."""
    return ConnectError(
        f"{address} refuses the key of user {address.user}.",
        hint=f"Add the public key to ~/.ssh/authorized_keys of {address.user} on {address.name}; the host's page has "
        "the command. If it is there: nobody but the login may be able to write that file and its directory, and "
        "AllowUsers or AllowGroups of sshd_config, where set, must name the login.",
        permanent=True,
    )


def did_not_begin(address: Address, status: int, noise: bytes) -> ConnectError:
    """The login runs something else; or it was killed, which trying again may mend."""
    said = " ".join(noise.decode("utf-8", "replace").split())
    return ConnectError(
        f"The login {address.user} on {address} ended with status {status} before it ran a command"
        + (f", and said: {said[:300]}" if said else "."),
        hint="Its shell, a start-up file of it (.bashrc, .zshenv, config.fish, .cshrc) or a forced command in "
        "authorized_keys ends or replaces the session. Put such lines behind a test for a terminal ([ -t 0 ]), or "
        "give BenchHub a login with a plain shell.",
        permanent=status <= _LAST_OWN_STATUS,
    )
