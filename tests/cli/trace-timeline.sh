# Memory over time: in the terminal, as CSV, as a picture.
python3 "$DATA/support/trace.py" run.mlyze
COLUMNS=72 coffer timeline run.mlyze
coffer timeline run.mlyze --points 5 --csv
coffer timeline run.mlyze --from 1ms --to 5ms --points 2 --json
coffer timeline run.mlyze -o run.svg
head -c 5 run.svg; echo
coffer timeline run.mlyze -o run.png --width 640 --height 480
od -An -v -tx1 -j16 -N8 run.png
coffer timeline run.mlyze -o points.csv --points 2
cat points.csv
coffer timeline run.mlyze -o run.txt
echo "exit $?"
coffer timeline run.mlyze --from 5ms --to 1ms
echo "exit $?"
