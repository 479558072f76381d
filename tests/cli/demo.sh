# The tour goes through: every command of it gives the exit status that it should.
"$DATA/../scripts/demo" >tour.txt
echo "exit $?"
grep '^[#$] ' tour.txt
