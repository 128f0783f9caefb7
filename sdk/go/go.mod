module daegi.io/guard

go 1.22
