# Several files are listed, and a pattern without a match says so.
exec 2>&1
v=$DATA/vectors
cp "$v/mscan/two-sequences.mscan" a.mscan
cp "$v/mscan/two-sequences.mscan" b.mscan
cp "$v/mcf/only-config.mcf" c.mcf
coffer ls a.mscan b.mscan
echo "exit $?"
coffer ls a.mscan c.mcf --what sections
echo "exit $?"
coffer ls a.mscan b.mscan '*q_proj*' --what params
coffer ls a.mscan b.mscan '*q_proj*' --what params --json
coffer ls a.mscan b.mscan '*q_proj*' --what params --csv
echo "nothing matches"
coffer ls a.mscan 'nothing*' --what params
echo "exit $?"
coffer ls a.mscan b.mscan 'nothing*' --what params --json
echo "exit $?"
coffer ls a.mscan missing.mscan
echo "exit $?"
coffer ls a.mscan missing other
echo "exit $?"
coffer ls missing.mscan
echo "exit $?"
