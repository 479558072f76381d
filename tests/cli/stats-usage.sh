# What cannot be asked for.
cd "$DATA/vectors/mscan"
exec 2>&1
coffer stats two-sequences.mscan --metric dsc --by token
echo "exit $?"
coffer stats two-sequences.mscan --scope layer
echo "exit $?"
coffer stats two-sequences.mscan --csv --json
echo "exit $?"
coffer stats two-sequences.mscan --sequence 9
echo "exit $?"
coffer stats two-sequences.mscan --metric sps --sort mean
echo "exit $?"
coffer stats two-sequences.mscan --by head
echo "exit $?"
coffer stats truncated-records.mscan
echo "exit $?"
coffer stats two-sequences.mscan --metric sps --sort sps --csv >/dev/full
echo "exit $?"
