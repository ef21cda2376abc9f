#!/bin/sh
# An sshd that lets in whom `let-in` has named, as root and by key alone. Its own key is made at the first start and kept
# in the volume, so a new container is still the host that BenchHub knows.
set -eu
install -d -m 0700 /root/.ssh /root/.host-key
[ -s /root/.host-key/ssh_host_ed25519_key ] || ssh-keygen -q -t ed25519 -N '' -C "$(hostname)" -f /root/.host-key/ssh_host_ed25519_key
exec /usr/sbin/sshd -D -e -h /root/.host-key/ssh_host_ed25519_key -o PasswordAuthentication=no -o PermitRootLogin=prohibit-password
