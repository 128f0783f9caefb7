-- Writes a line into the journal and forgets the oldest beyond what is kept.
-- KEYS: 1 journal
-- ARGV: 1 entry · 2 how many are kept
-- Reply: none
allow_oom(KEYS[1])
redis.call('LPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], 0, tonumber(ARGV[2]) - 1)
