#!/bin/sh
# Makes dist of the last commit twice, in folders with other names, and the second time from an
# empty cache, with another mask and time zone. The bytes must be the same.
set -eu
cd "$(dirname "$0")/../../.."
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
first=$tmp/one second=$tmp/a-folder/with-a-longer/name
git clone -q . "$first"
git clone -q . "$second"
"$first/cmd/holdfast/packaging/dist.sh" "$first/dist" >/dev/null
(
	umask 077
	TZ=Asia/Tokyo GOCACHE=$tmp/cache "$second/cmd/holdfast/packaging/dist.sh" "$second/dist" >/dev/null
)
cmp "$first/dist/SHA256SUMS" "$second/dist/SHA256SUMS"
cat "$first/dist/SHA256SUMS"
echo "dist-check: both are the same"
