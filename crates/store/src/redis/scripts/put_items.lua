-- Creates or changes items of one partition, each unless the change is older than what is stored.
-- KEYS: 1 items and 2 generation of the partition · 3.. the item of each change; one may come twice
-- ARGV: 1 '1' to answer with the items · 2 now · 3 the generation the process knows · 4 an id for a
--       partition that has none · 5 how many words of default policy follow · 6.. those: field, value, …
--       then for each change: id, name, stock, enabled 0|1, version or '', offset and time it was read at
--       or '' and '', how many words of policy follow (0: keep the stored one), those
-- Reply: for each change 'created', 'updated' or 'stale'; where items are asked for
--        {'created'|'updated', HGETALL item} or {'stale'}
local ITEMS, answer_items, now = KEYS[1], ARGV[1] == '1', tonumber(ARGV[2])
local defaults_from, defaults_to = 6, 5 + tonumber(ARGV[5])
local NEW = {'through', '0', 'joined', '0', 'admitted', '0', 'ended', '0'}

local function extend(words, from, first, last)
  for i = first, last do words[#words + 1] = from[i] end
end

-- A new line begins behind every number the item's earlier one has given. One that nobody was ever
-- in has sent nobody away: older numbers may be of a line that was lost, which the partition's
-- generation tells.
local run
local function line_from(tail, joined)
  local base = math.max(math.min(now * 64, HIGHEST), tonumber(tail or '0'))
  run = run or server()
  local valid_from = (joined or '0') == '0' and 0 or base + 1
  return {'base', txt(base), 'tail', txt(base), 'validFrom', txt(valid_from), 'dropped', '0', 'paused', '0',
    'lostFrom', '0', 'takeBackUntil', '0', 'recoveringUntil', '0', 'behindUntil', '0', 'clockBase', '0',
    'heldUntil', '0', 'stopped', '0', 'servableSince', '0', 'run', run}
end

-- Applies the change whose words begin at ARGV[at]; returns the reply and where the next begins.
local function put(key, at)
  local version, policy_words = ARGV[at + 4], tonumber(ARGV[at + 7])
  local next = at + 8 + policy_words
  local stored_version, removed, tail, revision, joined =
    unpack(redis.call('HMGET', key, 'version', 'removed', 'tail', 'revision', 'joined'))
  if stored_version and version ~= '' and not is_newer(version, stored_version) then
    return answer_items and {'stale'} or 'stale', next
  end

  local creates = not stored_version or removed == '1'
  local words = {'id', ARGV[at], 'name', ARGV[at + 1], 'stock', ARGV[at + 2], 'enabled', ARGV[at + 3],
    'revision', txt(tonumber(revision or '0') + 1), 'updatedAt', txt(now)}
  if version ~= '' then extend(words, {'version', version}, 1, 2)
  elseif not stored_version then extend(words, {'version', '0'}, 1, 2) end
  if ARGV[at + 5] ~= '' then
    extend(words, {'readOffset', ARGV[at + 5], 'readAt', ARGV[at + 6]}, 1, 4)
  end
  if creates then
    extend(words, {'removed', '0', 'createdAt', txt(now)}, 1, 4)
    local line = line_from(tail, joined)
    extend(words, line, 1, #line)
    if not stored_version then extend(words, NEW, 1, #NEW) end
    if policy_words == 0 then extend(words, ARGV, defaults_from, defaults_to) end
    redis.call('SADD', ITEMS, ARGV[at])
  end
  extend(words, ARGV, at + 8, next - 1)
  redis.call('HSET', key, unpack(words))
  local reply = creates and 'created' or 'updated'
  if answer_items then return {reply, redis.call('HGETALL', key)}, next end
  return reply, next
end

-- A change may take stock away or disable an item, which must work on a full server.
allow_oom(ITEMS)
check_generation(KEYS[2], ARGV[3], ARGV[4], now)
local replies, at = {}, defaults_to + 1
for change = 1, #KEYS - 2 do
  replies[change], at = put(KEYS[change + 2], at)
end
return replies
