# coffer heap answers from the objects, references and snapshots of a trace.
python3 "$DATA/support/heap.py" heap.mlyze
coffer check heap.mlyze
coffer heap heap.mlyze
coffer heap heap.mlyze --since 1 --top 3
coffer heap heap.mlyze --path Cache
coffer heap heap.mlyze --path Leaf
coffer heap heap.mlyze --path Session --json --top 1
coffer heap heap.mlyze -s 1 --json
coffer heap heap.mlyze --path Nothing || echo "status $?"
coffer heap heap.mlyze -s 3 || echo "status $?"
python3 "$DATA/support/trace.py" plain.mlyze
coffer heap plain.mlyze || echo "status $?"
