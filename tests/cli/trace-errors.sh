# Traces that are cut off or odd are read as far as they go, and said to be so.
python3 "$DATA/support/trace.py" run.mlyze
head -c 1400 run.mlyze >cut.mlyze
coffer leaks cut.mlyze
echo "exit $?"
coffer stats "$DATA/compat/mlyze/memlyze-0.1.mlyze" | head -12
coffer peak run.mlyze --at nowhere
echo "exit $?"
coffer stats run.mlyze --window 5ms
echo "exit $?"
coffer stats run.mlyze --window 5ms..1ms
echo "exit $?"
coffer leaks run.mlyze --min-age 5
echo "exit $?"
coffer leaks run.mlyze --by file --suppress x
echo "exit $?"
coffer leaks run.mlyze --suppressions missing.txt
echo "exit $?"
coffer peak "$DATA/vectors/mscan/two-sequences.mscan"
echo "exit $?"
coffer peak missing.mlyze
echo "exit $?"
coffer peak .
echo "exit $?"
# A profile of another tool must be converted to a trace first.
coffer leaks "$DATA/compat/mlyze-tools/grow.massif"
echo "exit $?"
