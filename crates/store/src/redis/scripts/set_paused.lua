-- Pauses or resumes admission.
-- ARGV: 1 paused 0|1
-- Reply: HGETALL item, or {} if there is none
if not is_there() then return {} end
allow_oom(ITEM)
redis.call('HSET', ITEM, 'paused', ARGV[1])
return touched()
