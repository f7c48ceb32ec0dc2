#!/bin/sh
# Makes the packages for Python and Node in a folder, without a network. The same files give the same
# bytes, by the same tools. A package whose tools are not installed is left out.
set -eu
umask 022
out=$(realpath "$1")
cd "$(dirname "$0")/../../.."
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The tools write beside the sources, and keep the rights of files: they get a copy.
copy() {
	cp -R "netproto/client/$1" "$tmp"
	cp LICENSE "$tmp/$1"
	chmod -R u=rwX,go=rX "$tmp/$1"
	cd "$tmp/$1"
}

if /usr/bin/python3 -c 'import setuptools, wheel' 2>/dev/null; then
	(
		copy python
		rm -rf build ./*.egg-info
		/usr/bin/python3 -W ignore -c 'import sys, setuptools.build_meta as b; b.build_wheel(sys.argv[1])' "$out" >/dev/null
	)
else
	echo "clients.sh: the package for Python is left out: it needs python3-setuptools and python3-wheel" >&2
fi
if command -v npm >/dev/null; then
	(copy node && npm pack --silent --offline --no-update-notifier --cache "$tmp/cache" --pack-destination "$out" >/dev/null)
else
	echo "clients.sh: the package for Node is left out: it needs npm" >&2
fi
