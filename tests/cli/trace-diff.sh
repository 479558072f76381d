# Two runs: what grew, and whether it is too much.
python3 "$DATA/support/trace.py" monday.mlyze
python3 "$DATA/support/trace.py" today.mlyze more
coffer diff monday.mlyze today.mlyze
echo "exit $?"
coffer diff monday.mlyze today.mlyze --what leaks --json
echo "exit $?"
coffer diff monday.mlyze today.mlyze --what leaks --fail-over 1K >/dev/null
echo "exit $?"
coffer diff monday.mlyze today.mlyze --what leaks --fail-over 1M >/dev/null
echo "exit $?"
coffer diff today.mlyze monday.mlyze --what leaks --fail-over 0 >/dev/null
echo "exit $?"
coffer diff monday.mlyze monday.mlyze
echo "exit $?"
coffer diff monday.mlyze "$DATA/vectors/mscan/two-sequences.mscan" --fail-over 1
echo "exit $?"
# No markers in one: totals and stacks only.
printf 'main;work;allocate 3000000\nmain;start 20\n' >other.collapsed
coffer convert other.collapsed other.mlyze
coffer diff monday.mlyze other.mlyze
echo "exit $?"
