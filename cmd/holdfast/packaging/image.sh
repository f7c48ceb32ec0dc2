#!/bin/sh
# Makes an OCI archive of the Dockerfile's image with binaries that are ready, as in
#   image.sh holdfast.tar holdfast-linux-amd64 holdfast-linux-arm64
# What follows the last - of a name is its architecture. Needs buildah, and root. The same binaries
# give the same bytes, by the same buildah.
set -eu
umask 022
archive=$1
shift
packaging=$(dirname "$(realpath "$0")")
: "${SOURCE_DATE_EPOCH:=0}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# with runs buildah with a storage of its own: the machine's has no part in it.
with() { buildah --log-level error --root "$tmp/storage" --runroot "$tmp/run" --storage-driver vfs "$@"; }

with manifest create holdfast >/dev/null
for binary; do
	files=$tmp/files-${binary##*-}
	install -D -m 755 "$binary" "$files/holdfast"
	install -m 644 "$packaging/../../../LICENSE" "$files"
	mkdir "$files/volume"
	mkdir -m 700 "$files/volume/data" # what is copied itself does not keep its rights
	with bud --quiet --isolation chroot --target ready --platform "linux/${binary##*-}" --timestamp "$SOURCE_DATE_EPOCH" \
		--identity-label=false --manifest holdfast -f "$packaging/Dockerfile" "$files" >/dev/null
done
with manifest push --quiet --all holdfast "oci:$tmp/oci:holdfast:latest" >/dev/null
tar -C "$tmp/oci" --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf "$archive" .
