module daegi.io/guard/e2e

go 1.24

require daegi.io/guard v0.0.0

require github.com/go-chi/chi/v5 v5.5.0

replace daegi.io/guard => ../
