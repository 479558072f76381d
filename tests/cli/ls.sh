# Entries, all or by pattern, as a table or as lines of JSON.
cd "$DATA/vectors/mscan"
coffer ls two-sequences.mscan
coffer ls two-sequences.mscan --what params
coffer ls two-sequences.mscan '*q_proj*' --what params --json
coffer ls two-sequences.mscan 'nothing*' --what params
echo "nothing matches: exit $?"
coffer ls two-sequences.mscan --what nonsense
echo "exit $?"
coffer ls bad-json.mscan
echo "exit $?"
