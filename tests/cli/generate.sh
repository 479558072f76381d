# Man pages without a warning, and a page of documentation for every verb.
coffer generate man man
coffer generate docs docs
ls man/coffer-check.1 man/coffer.1 docs/check.md docs/README.md
for page in man/*.1; do
    if command -v groff >/dev/null; then
        groff -man -Tutf8 -ww -z "$page"
    fi
done
for page in docs/*.md; do
    name=$(basename "$page" .md)
    test "$name" = README || grep -q "($name.md)" docs/README.md || echo "$name is not in the list"
done
coffer generate man /dev/null/x
echo "exit $?"
