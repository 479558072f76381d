# Retained sizes of random heaps with cycles, compared with what becomes unreachable without each object.
exec 2>&1
python3 "$DATA/support/heap_random.py" "$(command -v coffer)" h.mlyze
coffer heap h.mlyze --objects --path T1
echo "exit $?"
coffer heap h.mlyze --objects --top 2 | sed 's/[0-9][0-9]*/N/g'
