# What a trace is, what is in it, and what is wrong with it.
cd "$DATA/vectors/mlyze"
coffer info mixed.mlyze
coffer info --json mixed.mlyze "$DATA/compat/mlyze/memlyze-0.1.mlyze" truncated-event.mlyze version-0.mlyze
echo "exit $?"
coffer ls mixed.mlyze
coffer ls mixed.mlyze 'phase*' --what functions
coffer ls mixed.mlyze --what files --json
coffer ls mixed.mlyze --what threads
coffer ls mixed.mlyze --what markers
coffer ls mixed.mlyze --what blocks
coffer ls mixed.mlyze --what shapes
echo "exit $?"
coffer check "$DATA/compat/mlyze/memlyze-0.1.mlyze"
echo "exit $?"
coffer check --json ./*.mlyze
echo "exit $?"
