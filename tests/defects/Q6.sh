# There is a guide for each kind of user, its blocks are run by the tests, and the index leads to it.
docs=$DATA/../docs
for guide in models sets traces scans matrices; do
    file=$docs/guide-$guide.md
    blocks=$(grep -c '^```\(sh\|console\)$' "$file")
    [ "$blocks" -ge 3 ] && echo "$guide: blocks that run"
    grep -q "guide-$guide.md" "$docs/index.md" && echo "$guide: in the index"
done
for subject in 'Saving safely' 'Loading safely' 'Copying rules' 'What a file is'; do
    grep -x "## $subject" "$docs/guide-matrices.md"
done
