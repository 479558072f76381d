# Help comes on stdout with status 0 when asked for, on stderr with status 2 when nothing was said.
coffer help diff
coffer help diff >a
coffer diff --help >b
coffer diff nothing at all -h >c
cmp a b && cmp a c && echo "the same page, however it is asked for"
coffer help >a
coffer --help >b
coffer -h >c
cmp a b && cmp a c && echo "the same overview"
coffer 2>d
echo "exit $?"
cmp a d && echo "on stderr"
sed -n '1d; /^usage/p; /  info /p; /^Exit/p' a
for verb in $(sed -n '/^Examples/q; s/^  \([a-z][a-z]*\) .*/\1/p' a); do
    coffer help "$verb" >page || echo "no help for $verb"
    grep -q "^usage: coffer $verb" page || echo "no usage line for $verb"
done
# Lines fit a terminal of 80 columns, examples excepted.
for verb in $(sed -n '/^Examples/q; s/^  \([a-z][a-z]*\) .*/\1/p' a); do
    coffer help "$verb" | sed '/^Examples/,$d' | python3 -c '
import sys
for line in sys.stdin:
    if len(line) > 81:
        print("too long:", line, end="")'
done
# Only the options of one format: by its name, or by a file.
coffer help get mcf | grep '^Options for'
coffer get "$DATA/vectors/mcf/plain.mcf" -h | grep '^Options for'
coffer help get nonsense 2>&1
# What people type for a verb that has another name.
for word in verify validate cat extract export show inspect dump unpack merge; do
    coffer $word 2>&1 | head -1
done
coffer quantise 2>&1 | head -1
