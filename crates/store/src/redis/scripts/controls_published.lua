-- Record that settings were published. An item whose settings changed meanwhile stays marked.
-- KEYS: CHANGED
-- ARGV: published.. (item, control version, …)
-- Reply: 'OK'
-- Atomic: no change is lost.
for i = PUBLISHED, #ARGV, 2 do
  local version = redis.call('ZSCORE', CHANGED, ARGV[i])
  if version and tonumber(version) <= tonumber(ARGV[i + 1]) then redis.call('ZREM', CHANGED, ARGV[i]) end
end
return 'OK'
