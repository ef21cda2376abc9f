#!/bin/sh
# Key login for root only; host keys are made at the first start, so no two labs share them.
set -eu
[ -n "${LAB_AUTHORIZED_KEY:-}" ] || { echo "Set LAB_AUTHORIZED_KEY to the public key that BenchHub shows for this host." >&2; exit 1; }
install -d -m 0700 /root/.ssh
printf '%s\n' "$LAB_AUTHORIZED_KEY" > /root/.ssh/authorized_keys
chmod 0600 /root/.ssh/authorized_keys
ssh-keygen -A
exec /usr/sbin/sshd -D -e -o PasswordAuthentication=no -o PermitRootLogin=prohibit-password
