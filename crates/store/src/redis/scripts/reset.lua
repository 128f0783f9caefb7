-- Ends the line and begins a new one: earlier numbers are not valid any more.
-- ARGV: 1 now
-- Reply: HGETALL item, or {} if there is none
if not is_there() then return {} end
restart()
return touched(ARGV[1])
