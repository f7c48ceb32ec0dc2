#!/bin/sh
# Installs, upgrades, removes and purges a package in an overlay of this machine, which stays as it
# is. A namespace gives it addresses of its own. Needs root on Linux, and Debian's tools.
set -eu
package=$(realpath "$1")
dir=$(dirname "$(realpath "$0")")
if [ "${2-}" != inside ]; then
	if command -v lintian >/dev/null; then
		lintian --allow-root --fail-on error,warning "$package"
	fi
	exec unshare --mount --net --pid --fork --kill-child "$0" "$package" inside
fi
ip link set lo up
root=$(mktemp -d)
trap 'kill $server 2>/dev/null || true; umount -R "$root"; rmdir "$root"' EXIT
server=
mount -t tmpfs tmpfs "$root"
mkdir "$root/upper" "$root/work" "$root/machine" "$root/old"
mount -t overlay overlay -o "lowerdir=/,upperdir=$root/upper,workdir=$root/work" "$root/machine"
mount -t proc proc "$root/machine/proc"
mount -t tmpfs tmpfs "$root/machine/tmp"

# The same package with a lower version is what is upgraded.
new=$(dpkg-deb -f "$package" Version)
dpkg-deb -R "$package" "$root/old"
sed -i 's/^Version: .*/Version: 0.0.1/' "$root/old/DEBIAN/control"
cp "$package" "$root/machine/tmp/new.deb"
dpkg-deb -Znone --build "$root/old" "$root/machine/tmp/old.deb" >/dev/null
cp "$dir/deb-test-steps.sh" "$root/machine/tmp"
chroot "$root/machine" /tmp/deb-test-steps.sh "$new"
echo "deb-test: all is as expected"
