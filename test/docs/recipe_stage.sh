# Run as: unshare ... sh recipe_stage.sh STAGE BLOCK KIND, in namespaces of its own. The
# installation below STAGE appears in /usr/local, and nothing on the machine can be changed.
set -eu
stage=$1 block=$2 kind=$3
mount --make-rprivate /
mount --bind "$stage/usr/local" /usr/local
mount --bind "$stage/work" /mnt
mount --bind "$stage/etc" /etc
for covered in /tmp /var/tmp /var/lib /srv /home; do
	[ ! -d $covered ] || mount -t tmpfs -o mode=1777 none $covered
done
chmod 755 /var/lib
mkdir -p /var/lib/prometheus/node-exporter /srv/www /src /dst
cd /mnt
mkdir -p /etc/cron.d
echo 'ADLOCK_PAUSE=5s' >adlock.conf.new
echo '*/5 * * * *  root  /usr/bin/true' | tee /etc/cron.d/x >/etc/crontab
printf '#!/bin/sh\nexit 0\n' >/usr/local/bin/some.sh
echo '*/10 * * * *  /usr/bin/fetch-feeds --all' >/mnt/crontab
case $kind in
crontab)
	adlock init www-data # root owns its home
	: >called && chmod 666 called
	# Run each line as cron does: $SHELL -c COMMAND, with the variables above it.
	SHELL=/bin/sh
	while read -r line; do
		case $line in
		'' | '#'*) ;;
		[A-Z]*=*) export "${line?}" ;;
		*)
			set -f
			# shellcheck disable=SC2086 # five words and the rest
			set -- $line
			set +f
			shift 5
			"$SHELL" -c "$*" </dev/null
			;;
		esac
	done <"$block"
	;;
make)
	touch site make-index
	printf '#!/bin/sh\necho make-index >>/mnt/called\n' >make-index
	chmod 755 make-index
	make -s -f "$block"
	;;
python) python3 "$block" ;;
*) sh -eu "$block" ;;
esac
