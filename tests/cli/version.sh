# Version, compiler, CPU level, libraries and modules, for people and machines.
coffer --version | sed 's/ .*//' | grep .
coffer --version >a
coffer version >b
coffer -V >c
cmp a b && cmp a c && echo "the same"
coffer --version --json | python3 -c '
import json, sys
version = json.load(sys.stdin)
print(list(version), list(version["modules"]))
assert version["version"].count(".") == 2
assert len(version["libraries"]) == 6
assert all(module["found"] and module["library"] for name, module in version["modules"].items() if name != "cuda")'
