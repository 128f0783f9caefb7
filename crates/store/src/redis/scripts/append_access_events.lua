-- Append events to a log of the block list and delete the oldest beyond the limit.
-- KEYS: ACCESS_LOG
-- ARGV: max_events (int) · events..
-- Reply: none
-- Atomic: the log never exceeds the limit.
allow_oom(ACCESS_LOG)
for i = EVENTS, #ARGV do redis.call('LPUSH', ACCESS_LOG, ARGV[i]) end
redis.call('LTRIM', ACCESS_LOG, 0, max_events - 1)
