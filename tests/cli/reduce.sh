#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# reduce.sh DRIVEREC: what `driverec reduce` does where files are shared, held, cut short, too large, in the way, or
# taken away under it. Every case ends with a look at what is left in the folder: nothing but the files.
set -u
export LC_ALL=C TZ=UTC
driverec=$(realpath "$1")
folder=$(mktemp -d) || exit 1
children=()
cleanup() {
	[ "${#children[@]}" -eq 0 ] || kill -KILL "${children[@]}" 2>/dev/null
	rm -rf "$folder"
}
trap cleanup EXIT
cd "$folder" || exit 1
export TMPDIR=$folder/tmp
mkdir "$TMPDIR" work
failures=0
case_name=

begin() {
	case_name=$1
	rm -rf work
	mkdir work
	cp raw.json.gz work/x.json.gz
}

complain() {
	printf 'reduce: %s: %s\n' "$case_name" "$*"
	sed 's/^/    /' out err
	failures=$((failures + 1))
}

# expect STATUS ARGUMENT...: runs `driverec reduce` with them.
expect() {
	local wanted=$1 status
	shift
	"$driverec" reduce "$@" >out 2>err </dev/null
	status=$?
	[ "$status" -eq "$wanted" ] || complain "status $status instead of $wanted: $*"
}

says() {
	grep -qF -- "$1" out err || complain "does not say '$1'"
}

one_line() {
	[ "$(cat out err | wc -l)" -eq 1 ] || complain "$(cat out err | wc -l) lines instead of one"
}

# Nothing but these in work/ and nothing in $TMPDIR.
left() {
	local wanted have
	wanted=$(printf '%s\n' "$@" | sort)
	have=$(cd work && find . -mindepth 1 ! -type d | sed 's|^\./||' | sort)
	[ "$have" = "$wanted" ] || complain "left in the folder: $(tr '\n' ' ' <<<"$have")"
	[ -z "$(ls -A "$TMPDIR")" ] || complain "left in TMPDIR: $(ls -A "$TMPDIR")"
}

same() {
	cmp -s "$1" "$2" || complain "$1 is not $2"
}

awk 'BEGIN {
	print "{\"traceEvents\":[";
	for (i = 0; i < 20000; i++)
		printf "{\"ph\":\"X\",\"name\":\"op %d\",\"cat\":\"c\",\"pid\":1,\"tid\":%d,\"ts\":%d.125,\"dur\":%d.5},\n",
			i % 7, i % 3, i, i % 500 == 0 ? 100 : 0;
	print "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"main\"}}]}";
}' >raw.json
gzip -nc raw.json >raw.json.gz
# Long enough for a signal to come in the middle.
sed '$d' raw.json | awk 'NR == 1 { print; next } { line[NR] = $0 } END { for (i = 0; i < 10; i++) for (n = 2; n <= NR; n++) print line[n] }' |
	gzip -1nc >long.json.gz
bins=(--bins 100)
in_place=(--in-place --settle 0 "${bins[@]}")
"$driverec" reduce "${bins[@]}" raw.json.gz -o result.json.gz >out 2>err || { complain 'does not reduce'; exit 1; }

# --- shared files ---

begin 'a writer has it open'
exec 3>>work/x.json.gz
expect 1 "${in_place[@]}" work/x.json.gz
says "is being written by pid $$ ("
one_line
same work/x.json.gz raw.json.gz
expect 0 "${in_place[@]}" work
says 'skipped: is being written by pid'
exec 3>&-
exec 3<work/x.json.gz # a reader is no writer
expect 0 "${in_place[@]}" work/x.json.gz
exec 3<&-
same work/x.json.gz result.json.gz
left x.json.gz

begin 'it was written a moment ago'
expect 1 --in-place "${bins[@]}" work/x.json.gz
says 'was written less than 10.0 s ago'
touch -d '1 minute ago' work/x.json.gz
expect 0 --in-place "${bins[@]}" work/x.json.gz
left x.json.gz

begin 'it changes all the time'
(while :; do touch work/x.json.gz; done) &
children+=($!)
expect 1 "${in_place[@]}" work/x.json.gz
one_line
kill "${children[@]}"
wait "${children[@]}" 2>/dev/null
children=()
same work/x.json.gz raw.json.gz
left x.json.gz

begin 'eight reducers race'
for i in 1 2 3 4 5 6 7 8; do
	"$driverec" reduce "${in_place[@]}" work/x.json.gz >"work.$i" 2>&1 &
	children+=($!)
done
done_by=0
for i in "${!children[@]}"; do
	wait "${children[$i]}"
	status=$?
	[ $status -le 1 ] || complain "a racer ended with $status"
	cp "work.$((i + 1))" out
	: >err
	if grep -q 'verified' out; then
		done_by=$((done_by + 1))
	elif [ $status = 1 ]; then
		says 'is locked by pid'
	else
		says 'is reduced already'
	fi
done
children=()
[ $done_by = 1 ] || complain "$done_by racers did it"
same work/x.json.gz result.json.gz
left x.json.gz

begin 'a lock of another host'
printf 'driverec reduce\ntoken 0123456789abcdef\nhost node17\npid 4211\nstarted 1\nboot %s\npidns 1\n' \
	00000000-1111-2222-3333-444444444444 >work/.x.json.gz.driverec-lock
printf half >work/.x.json.gz.driverec-tmp-0123456789abcdef
expect 1 "${in_place[@]}" work/x.json.gz
says 'is locked by pid 4211 on node17, since '
says '--break-lock'
one_line
same work/x.json.gz raw.json.gz
left x.json.gz .x.json.gz.driverec-lock .x.json.gz.driverec-tmp-0123456789abcdef
expect 0 "${in_place[@]}" --break-lock work/x.json.gz
same work/x.json.gz result.json.gz
left x.json.gz

# --- what it replaces ---

begin 'mode, owner, time, links'
chmod 0640 work/x.json.gz
[ "$(id -u)" -ne 0 ] || chown 12345:23456 work/x.json.gz
ln work/x.json.gz work/kept.json.gz
ln -s x.json.gz work/link.json.gz
touch -d '2024-01-02 03:04:05.678' work/x.json.gz
before=$(stat -c '%a %u %g %y' work/x.json.gz)
expect 0 "${in_place[@]}" work/link.json.gz
says 'it has 2 names, the others keep the original'
[ "$(stat -c '%a %u %g %y' work/x.json.gz)" = "$before" ] || complain "was $before, is $(stat -c '%a %u %g %y' work/x.json.gz)"
[ -L work/link.json.gz ] || complain 'the link is gone'
same work/x.json.gz result.json.gz
same work/kept.json.gz raw.json.gz
left x.json.gz kept.json.gz link.json.gz

begin 'twice'
expect 0 "${in_place[@]}" work/x.json.gz
expect 0 "${in_place[@]}" work/x.json.gz
says 'skipped: is reduced already'
left x.json.gz

begin 'reduced already, into a folder'
cp result.json.gz work/r.json.gz
expect 0 "${bins[@]}" work --output-dir work/out
says 'work/r.json.gz: is reduced already: copied byte for byte'
same work/out/r.json.gz result.json.gz
expect 0 work/r.json.gz
says 'skipped: is reduced already'
expect 0 --force work/r.json.gz -o work/out/x.json
says 'skipped: is reduced already, in another format'
left x.json.gz r.json.gz out/r.json.gz out/x.json.gz

begin 'not smaller'
printf '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2}]' >work/s.json
cp work/s.json small.json
expect 0 "${in_place[@]}" work/s.json
says 'left as it is'
same work/s.json small.json
expect 0 "${bins[@]}" work/s.json -o work/t.json
says 'copied byte for byte'
same work/t.json small.json
[ "$(stat -c %h work/t.json)" = 1 ] || complain 'is a hard link'
left x.json.gz s.json t.json

begin 'outputs in the way'
expect 0 "${bins[@]}" work/x.json.gz
says 'in work/x.reduced.json.gz'
same work/x.reduced.json.gz result.json.gz
expect 1 "${bins[@]}" work/x.json.gz
says 'work/x.reduced.json.gz is there already (--force)'
expect 0 "${bins[@]}" --force work/x.json.gz
expect 1 "${bins[@]}" --force work/x.json.gz -o work/x.json.gz
says 'would be its own output; --in-place does that'
same work/x.json.gz raw.json.gz
left x.json.gz x.reduced.json.gz

begin 'dry run'
expect 0 "${bins[@]}" --dry-run work/x.json.gz
says 'nothing was written'
expect 0 "${in_place[@]}" --dry-run work/x.json.gz
same work/x.json.gz raw.json.gz
left x.json.gz

# --- many files ---

tree() {
	mkdir -p work/in/a work/in/b/c
	for file in a/r0.json.gz a/r1.json.gz b/c/r0.json.gz; do
		cp raw.json.gz "work/in/$file"
	done
	printf '{"version": 1}' >work/in/settings.json
	printf 'text' >work/in/b/notes.txt
	head -c 3000 raw.json.gz >work/in/b/cut.json.gz
	: >work/in/b/empty.json
	ln -s ../../x.json.gz work/in/a/outside.json.gz
	ln -s .. work/in/b/round
}
files=(x.json.gz in/a/outside.json.gz in/a/r0.json.gz in/a/r1.json.gz in/b/c/r0.json.gz in/b/cut.json.gz in/b/empty.json
	in/b/notes.txt in/b/round in/settings.json)

begin 'a folder to a folder'
tree
expect 0 "${bins[@]}" work/in --output-dir work/out
says 'work/in/settings.json: skipped:'
says 'work/in/b/empty.json: skipped: is empty'
says 'the gzip data is cut off'
says '4 of 6 files done, 2 skipped, 0 failed'
same work/out/a/r1.json.gz result.json.gz
same work/out/b/c/r0.json.gz result.json.gz
left "${files[@]}" out/a/r0.json.gz out/a/r1.json.gz out/b/c/r0.json.gz out/b/cut.json.gz
mv work/out alone
expect 0 "${bins[@]}" --jobs 4 work/in -o work/out/
says '4 of 6 files done, 2 skipped, 0 failed'
diff -r alone work/out >/dev/null || complain 'four at once make another result'
rm -rf alone

begin 'a folder in place'
tree
expect 0 "${in_place[@]}" --jobs 3 work/in
same work/in/a/r0.json.gz result.json.gz
same work/x.json.gz raw.json.gz
left "${files[@]}"
expect 0 "${in_place[@]}" work/in
says '0 of 6 files done, 6 skipped, 0 failed'

begin 'in place would lose what is damaged'
head -c 30000 raw.json.gz >work/cut.json.gz
cp work/cut.json.gz cut.json.gz
expect 1 "${in_place[@]}" work/cut.json.gz
says 'the gzip data is cut off (at byte '
says 'and in place would lose what cannot be read'
same work/cut.json.gz cut.json.gz
expect 0 "${bins[@]}" work/cut.json.gz -o work/out.json.gz
expect 0 "${in_place[@]}" --force work/cut.json.gz
same work/cut.json.gz work/out.json.gz
left x.json.gz cut.json.gz out.json.gz

begin 'one fails'
printf 'hello' >work/a.json
cp raw.json.gz work/b.json.gz
expect 1 "${in_place[@]}" work/a.json work/b.json.gz
same work/b.json.gz raw.json.gz
expect 1 "${in_place[@]}" --keep-going work/a.json work/gone.json work/b.json.gz
same work/b.json.gz result.json.gz
left a.json b.json.gz x.json.gz

begin 'one name for two'
mkdir work/a work/b
cp raw.json.gz work/a/r.json.gz
cp raw.json.gz work/b/r.json.gz
expect 2 work/a/r.json.gz work/b/r.json.gz -o work/out/
says 'would have one output'
expect 0 "${bins[@]}" work/a work/b --jobs 2
expect 2 "${bins[@]}" work/a work/b --output-dir work/out
left x.json.gz a/r.json.gz a/r.reduced.json.gz b/r.json.gz b/r.reduced.json.gz

# --- pipes ---

begin 'standard input and output'
"$driverec" reduce "${bins[@]}" - -o work/out.json.gz <raw.json.gz >out 2>err || complain 'from a file'
same work/out.json.gz result.json.gz
rm work/out.json.gz
"$driverec" reduce "${bins[@]}" - -o work/out.json.gz < <(cat raw.json.gz) >out 2>err || complain 'from a pipe'
same work/out.json.gz result.json.gz
[ "$(stat -c %a work/out.json.gz)" = "$(printf %o $((0666 & ~$(umask))))" ] || complain 'mode of what came by pipe'
"$driverec" reduce "${bins[@]}" <(cat raw.json.gz) -o - >work/piped.json.gz 2>err || complain 'from a named pipe'
same work/piped.json.gz result.json.gz
"$driverec" reduce "${bins[@]}" work/x.json.gz -o - 2>err | true
expect 2 -
left x.json.gz out.json.gz piped.json.gz

begin 'nobody listens'
"$driverec" reduce "${in_place[@]}" work/x.json.gz 2>err | true
same work/x.json.gz result.json.gz
left x.json.gz

# --- no room ---

begin 'no room by limit'
(
	ulimit -f 8
	expect 1 --in-place --settle 0 --bins 3000 work/x.json.gz
	says 'does not fit: File too large; make room, or write elsewhere (-o)'
	one_line
	expect 1 --bins 3000 work/x.json.gz -o work/out.json.gz
	says 'work/out.json.gz does not fit'
	exit $failures
)
failures=$?
same work/x.json.gz raw.json.gz
left x.json.gz

begin 'no room on the disk'
mkdir small
if unshare -m true 2>/dev/null; then
	export driverec
	unshare -m bash -c '
		mount -t tmpfs -o size=96k tmpfs small && cp raw.json.gz small/x.json.gz || exit 77
		"$driverec" reduce --in-place --settle 0 --bins 3000 small/x.json.gz >out 2>err
		[ $? = 1 ] && cmp small/x.json.gz raw.json.gz && [ "$(ls -A small)" = x.json.gz ]'
	case $? in
	0) says 'No space left on device' ;;
	77) printf 'skipped: %s: no tmpfs can be mounted\n' "$case_name" ;;
	*) complain 'status, file or litter' ;;
	esac
else
	printf 'skipped: %s: mounting is not allowed\n' "$case_name"
fi
left x.json.gz

# --- signals ---

for signal in INT TERM HUP; do
	begin "SIG$signal"
	cp long.json.gz work/x.json.gz
	env --default-signal="$signal" "$driverec" reduce "${in_place[@]}" work/x.json.gz >out 2>err &
	child=$!
	children=("$child")
	until [ -e work/.x.json.gz.driverec-lock ] || ! kill -0 "$child" 2>/dev/null; do :; done
	kill -s "$signal" "$child"
	wait "$child" 2>/dev/null
	status=$?
	children=()
	[ $status -eq $((128 + $(kill -l "$signal"))) ] || complain "status $status"
	same work/x.json.gz long.json.gz
	left x.json.gz
done

if [ "$(id -u)" -ne 0 ]; then
	begin 'not allowed to read'
	chmod 000 work/x.json.gz
	expect 1 "${bins[@]}" work/x.json.gz
	says 'Permission denied'
	left x.json.gz
	begin 'not allowed to write'
	chmod 500 work
	expect 1 "${in_place[@]}" work/x.json.gz
	says 'Permission denied'
	chmod 700 work
	left x.json.gz
fi

[ "$failures" -eq 0 ] || exit 1
printf 'ok\n'
