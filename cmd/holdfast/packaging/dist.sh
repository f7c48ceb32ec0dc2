#!/bin/sh
# Makes binaries, packages, an image and their checksums in dist, or in the folder that it is given. The same
# commit gives the same bytes, whatever the folder, the time and the user.
set -eu
umask 022
mkdir -p "${1:-dist}"
out=$(cd "${1:-dist}" && pwd)
cd "$(dirname "$0")/../../.."
packaging=cmd/holdfast/packaging

version=$(sed -n 's/^const release = "\(.*\)"$/\1/p' cmd/holdfast/version.go)
format=$(sed -n 's/^const FormatVersion = //p' storage/content/control.go)
GOTOOLCHAIN=go$(sed -n 's/^go //p' go.mod)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
vcs=$(git status >/dev/null 2>&1 && echo true || echo false)
export GOTOOLCHAIN SOURCE_DATE_EPOCH
# What the environment could change in a binary.
export CGO_ENABLED=0 GOENV=off GOFLAGS= GOEXPERIMENT= GOAMD64=v1 GOARM64=v8.0 LC_ALL=C TZ=UTC

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

build() { # system architecture file
	GOOS=$1 GOARCH=$2 go build -trimpath -buildvcs="$vcs" -ldflags '-s -w -buildid=' -o "$3" ./cmd/holdfast
}

# licenses prints those of all that is in the binaries.
licenses() {
	cat LICENSE
	printf '\n\n== The Go library\n\n'
	cat "$(go env GOROOT)/LICENSE"
	for system in linux darwin; do
		GOOS=$system go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/holdfast
	done | sort -u | while read -r path number dir; do
		printf '\n\n== %s %s\n\n' "$path" "$number"
		find "$dir" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) | sort | xargs cat
	done
}

# debian prints licenses as a package has them: Debian's systems have the text of Apache's already.
debian() {
	sed '/^ *Apache License$/,/^ *END OF TERMS AND CONDITIONS$/c\
The Apache License, version 2.0. On Debian systems its text is /usr/share/common-licenses/Apache-2.0.' "$1"
}

# changelog prints the changelog that Debian's tools read.
changelog() {
	printf 'holdfast (%s) unstable; urgency=medium\n\n  * The changes are in CHANGELOG.md.gz beside this file.\n\n' "$version"
	printf ' -- %s  %s\n' "$(sed -n 's/^Maintainer: //p' $packaging/deb/control)" "$(date -uRd "@$SOURCE_DATE_EPOCH")"
}

# completion prints the code for a shell, with the place of the installed program.
completion() { "$tmp/holdfast" completion "$1" | sed "s|$tmp/holdfast|/usr/bin/holdfast|"; }

deb() { # architecture
	root=$tmp/$1
	install -D -m 755 "$out/holdfast-$version-linux-$1" "$root/usr/bin/holdfast"
	install -D -m 644 $packaging/holdfast.service "$root/usr/lib/systemd/system/holdfast.service"
	for unit in holdfast-backup.service holdfast-backup.timer; do
		install -m 644 $packaging/$unit "$root/usr/lib/systemd/system/$unit"
	done
	install -D -m 640 $packaging/holdfast.toml "$root/etc/holdfast/holdfast.toml"
	doc=$root/usr/share/doc/holdfast
	install -d "$doc"
	debian "$out/holdfast-$version-licenses.txt" >"$doc/copyright"
	gzip -9nc CHANGELOG.md >"$doc/CHANGELOG.md.gz"
	changelog | gzip -9n >"$doc/changelog.gz"
	install -D -m 644 $packaging/deb/lintian-overrides "$root/usr/share/lintian/overrides/holdfast"
	mkdir -p "$root/usr/share/man/man1" "$root/usr/share/bash-completion/completions" \
		"$root/usr/share/zsh/vendor-completions" "$root/usr/share/fish/vendor_completions.d"
	"$tmp/holdfast" man | gzip -9n >"$root/usr/share/man/man1/holdfast.1.gz"
	completion bash >"$root/usr/share/bash-completion/completions/holdfast"
	completion fish >"$root/usr/share/fish/vendor_completions.d/holdfast.fish"
	# zsh runs the file at the first Tab, which is to be answered, too.
	{ echo '#compdef holdfast'; completion zsh | sed 's/^complete \(.*\) holdfast$/&\n_bash_complete \1/'; } \
		>"$root/usr/share/zsh/vendor-completions/_holdfast"

	install -d "$root/DEBIAN"
	sed -e "s/@VERSION@/$version/; s/@ARCH@/$1/" \
		-e "s/@SIZE@/$(find "$root" -type f -printf '%s\n' | awk '{ n += $1 } END { print int(n / 1024) }')/" \
		$packaging/deb/control >"$root/DEBIAN/control"
	echo /etc/holdfast/holdfast.toml >"$root/DEBIAN/conffiles"
	sed "s/@FORMAT@/$format/" $packaging/deb/preinst >"$root/DEBIAN/preinst"
	chmod 755 "$root/DEBIAN/preinst"
	install -m 755 $packaging/deb/postinst $packaging/deb/prerm $packaging/deb/postrm "$root/DEBIAN"
	(cd "$root" && find usr -type f | sort | xargs md5sum >DEBIAN/md5sums)
	dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$root" "$out/holdfast_${version}_$1.deb"
}

rm -f "$out"/holdfast-* "$out"/holdfast_* "$out/SHA256SUMS"
build "$(go env GOHOSTOS)" "$(go env GOHOSTARCH)" "$tmp/holdfast"
for target in linux-amd64 linux-arm64 darwin-arm64; do
	build "${target%-*}" "${target#*-}" "$out/holdfast-$version-$target"
done
licenses >"$out/holdfast-$version-licenses.txt"
deb amd64
deb arm64
$packaging/clients.sh "$out"
if command -v buildah >/dev/null && [ "$(id -u)" = 0 ]; then
	$packaging/image.sh "$out/holdfast-$version-oci.tar" "$out/holdfast-$version-linux-amd64" "$out/holdfast-$version-linux-arm64"
else
	echo "dist.sh: the image is left out: it needs buildah, and root" >&2
fi
cd "$out"
sha256sum holdfast* >SHA256SUMS
cat SHA256SUMS
