#!/bin/sh
# What deb-test.sh runs in its overlay. Any step that fails ends it.
set -eu
new=$1
config=/etc/holdfast/holdfast.toml
unit=/usr/lib/systemd/system/holdfast.service
link=/etc/systemd/system/multi-user.target.wants/holdfast.service
calls=/tmp/calls
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export DEBIAN_FRONTEND=noninteractive
unset $(env | sed -n 's/^\(HOLDFAST_[A-Z_]*\)=.*/\1/p')

step() { echo "deb-test: $*"; }
fail() { echo "deb-test: $*" >&2; exit 1; }
is() { [ "$1" = "$2" ] || fail "$3 is \"$1\", expected \"$2\""; }

# asked says what a service manager was asked to do with the unit since the last time.
asked() {
	sed -n 's/^\(.* \)\?\(start\|restart\|stop\) holdfast.service$/\2/p' $calls
	: >$calls
}

# start runs the unit's command as its user, and waits until it is ready.
start() {
	command=$(sed -n 's/^ExecStart=//p' $unit)
	user=$(sed -n 's/^User=//p' $unit)
	# shellcheck disable=SC2086 # the words of a command
	setpriv --reuid "$user" --regid "$user" --clear-groups $command 2>/tmp/log &
	server=$!
	until holdfast health >/dev/null 2>&1; do
		kill -0 $server 2>/dev/null || { cat /tmp/log >&2; fail "the server ended"; }
		sleep 0.1
	done
}

stop() {
	kill $server
	wait $server || fail "the server ended with exit code $?"
}

# A service manager that takes notes: none runs here. A policy could forbid to ask it.
: >$calls
rm -rf /run/systemd /usr/sbin/policy-rc.d
mkdir -p /run/systemd/system
mv /usr/bin/systemctl /usr/bin/systemctl-real
cat >/usr/bin/systemctl <<'END'
#!/bin/sh
case $* in
*--root=*) exec systemctl-real "$@" ;;
*is-enabled*) exec systemctl-real --root=/ "$@" ;;
*is-active*) exit 3 ;;
*) echo "$*" >>/tmp/calls ;;
esac
END
chmod 755 /usr/bin/systemctl

step "install"
dpkg -i /tmp/old.deb
is "$(asked)" start "what the installation asks for"
is "$(stat -c '%U %a' /var/lib/holdfast)" "holdfast 700" "the data folder"
is "$(stat -c '%U %G %a' $config)" "root holdfast 640" "the configuration"
is "$(getent passwd holdfast | cut -d: -f6,7)" "/var/lib/holdfast:/usr/sbin/nologin" "the user"
[ -L $link ] || fail "the unit is not enabled"
is "$(dpkg --verify holdfast)" "" "dpkg --verify"
holdfast config check $config
for file in /usr/share/man/man1/holdfast.1.gz /usr/share/doc/holdfast/copyright /usr/share/doc/holdfast/changelog.gz /usr/share/doc/holdfast/CHANGELOG.md.gz; do
	[ -s $file ] || grep -q '^path-exclude=/usr/share' /etc/dpkg/dpkg.cfg.d/* || fail "there is no $file"
done
mkdir -p /tmp/man && dpkg-deb -x /tmp/old.deb /tmp/man
is "$(man --warnings -l /tmp/man/usr/share/man/man1/holdfast.1.gz 2>&1 >/dev/null)" "" "what man complains of"
# What the test machine is not to be asked of is left out: man knows no pages where dpkg excludes them.
sed 's/^Documentation=.*//' $unit >/tmp/holdfast.service
is "$(systemd-analyze verify /tmp/holdfast.service 2>&1)" "" "what systemd-analyze complains of"
for name in holdfast-backup.service holdfast-backup.timer; do
	sed 's/^Documentation=.*//' /usr/lib/systemd/system/$name >/tmp/$name
done
is "$(systemd-analyze verify /tmp/holdfast-backup.timer 2>&1)" "" "what systemd-analyze complains of in the timer"
systemd-analyze security --offline=true --threshold=20 --no-pager $unit | tail -1
bash -c 'source /usr/share/bash-completion/completions/holdfast; complete -p holdfast' | grep -q /usr/bin/holdfast

step "start"
start
holdfast push jobs hello
stop

step "upgrade across a data format"
cp -p /var/lib/holdfast/format /tmp/format
echo 6 >/var/lib/holdfast/format
dpkg -i /tmp/new.deb 2>/tmp/refusal && fail "the package went over a folder that it does not read"
grep -q "^holdfast: /var/lib/holdfast has data format 6, and this version serves format $(cat /tmp/format) alone." /tmp/refusal || fail "$(cat /tmp/refusal)"
is "$(dpkg-query -W -f '${Version} ${Status}' holdfast)" "0.0.1 install ok installed" "the package"
is "$(asked)" "" "what the refused upgrade asks for"
cp -p /tmp/format /var/lib/holdfast/format

step "upgrade, with a change of the configuration"
echo '# changed here' >>$config
dpkg -i /tmp/new.deb
is "$(dpkg-query -W -f '${Version}' holdfast)" "$new" "the version"
is "$(asked)" restart "what the upgrade asks for"
is "$(tail -1 $config)" "# changed here" "the last line of the configuration"
is "$(stat -c '%U %G %a' $config)" "root holdfast 640" "the configuration"
start
is "$(holdfast peek jobs --json | sed -n 's/.*"payload":"\([^"]*\)".*/\1/p')" hello "the packet"
stop

step "upgrade of a unit that is disabled"
systemctl --root=/ disable holdfast.service >/dev/null 2>&1
dpkg -i /tmp/new.deb
[ ! -e $link ] || fail "the unit is enabled again"
is "$(asked)" "" "what the upgrade asks for"

step "removal and another installation"
dpkg -r holdfast
is "$(asked)" stop "what the removal asks for"
[ ! -e /usr/bin/holdfast ] || fail "the program is still there"
[ -e $config ] || fail "the configuration is gone"
dpkg -i /tmp/new.deb
start
is "$(holdfast pop jobs)" hello "the packet"
stop

step "purge"
dpkg -P holdfast
for gone in /var/lib/holdfast /etc/holdfast $unit $link /usr/bin/holdfast; do
	[ ! -e $gone ] && [ ! -L $gone ] || fail "$gone is still there"
done
is "$(find /etc /var/lib /usr -xdev -name '*holdfast*' ! -path '*/dpkg/*')" "" "what is left"
dpkg -P holdfast # once more does nothing
