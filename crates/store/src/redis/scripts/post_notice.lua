-- Posts what a process says about itself, and takes down what is too old.
-- KEYS: 1 notices
-- ARGV: 1 who · 2 text · 3 now · 4 the oldest time that is kept
-- Reply: none
local kept = redis.call('HGETALL', KEYS[1])
for i = 1, #kept, 2 do
  if tonumber(string.match(kept[i + 1], '^%d+')) < tonumber(ARGV[4]) then redis.call('HDEL', KEYS[1], kept[i]) end
end
allow_oom(KEYS[1])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3] .. ' ' .. ARGV[2])
