# Findings of sound and damaged files; the worst file decides the exit status.
cd "$DATA/vectors/mscan"
coffer check two-sequences.mscan
echo "exit $?"
coffer check two-sequences.mscan bad-json.mscan trailing-bytes.mscan truncated-records.mscan bad-magic.mscan
echo "exit $?"
coffer check trailing-bytes.mscan
echo "a warning alone: exit $?"
coffer check --strict trailing-bytes.mscan
echo "strict: exit $?"
coffer check two-sequences.mscan no-such-file.mscan bad-json.mscan
echo "one could not be read: exit $?"
coffer check --full --threads 2 two-sequences.mscan
coffer check - <version-9.mscan
cat version-9.mscan | coffer check -
echo "exit $?"
