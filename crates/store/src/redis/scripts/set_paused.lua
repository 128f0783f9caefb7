-- Pauses or resumes admission.
-- ARGV: 1 paused 0|1 · 2 now
-- Reply: HGETALL item, or {} if there is none
if not is_there() then return {} end
allow_oom(ITEM)
redis.call('HSET', ITEM, 'paused', ARGV[1])
-- Until the leader's next round finds that the line can admit; see admit.lua.
if ARGV[1] == '1' then redis.call('HSET', ITEM, 'stopped', '1') end
return touched(ARGV[2])
