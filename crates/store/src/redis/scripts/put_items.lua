-- Create or change items of one partition, each unless the change is older than the stored item.
-- KEYS: ITEMS · ACTIVE · GENERATION · REPLAYS · CHANGED (all of the partition) · item_keys.. (the item of each change; one may come
--       twice)
-- ARGV: answer_items ('1' to return the items) · now (int, ms) · generation (known to the process) · new_id
--       (for a partition that has none) · needs_log (the log that must be read to its end before, or '') · kept_words (int, how many of the last words of a policy are its
--       opening and lanes, which only a new item takes) · default_words (int, how many words of default policy follow) ·
--       words.. (those: field, value, …; then for each change: id, name, stock, enabled 0|1, version or '',
--       offset and time of the event in its log or '' and '', how many words of policy follow (0: keep the
--       stored one), those)
-- Reply: for each change 'created', 'updated' or 'stale', or 'held' for all; with answer_items
--        {'created'|'updated', HGETALL item} or {'stale'}
-- Atomic: version check and write of each item.
local defaults_to = WORDS + default_words - 1
local COUNTERS = {'through', '0', 'joined', '0', 'admitted', '0', 'ended', '0'}

local function append(words, from, first, last)
  for i = first, last do words[#words + 1] = from[i] end
end

-- Return the fields of a new line. It begins above every number that the item's earlier line has issued. A
-- line that no user ever joined accepts all older numbers, because they may be of a line that was lost. The
-- partition's generation decides whether they are.
local run
local function new_line_fields(tail, joined)
  local base = math.max(math.min(now * NUMBERS_PER_MS, MAX_NUMBER), tonumber(tail or '0'))
  run = run or run_id()
  local valid_from = (joined or '0') == '0' and 0 or base + 1
  return {'base', format_number(base), 'tail', format_number(base), 'validFrom', format_number(valid_from),
    'dropped', '0', 'paused', '0', 'lostFrom', '0', 'takeBackUntil', '0', 'lostRangeUsedAt', '0',
    'recoveringUntil', '0', 'behindUntil', '0', 'clockBase', '0', 'heldUntil', '0', 'stopped', '0',
    'servableSince', '0', 'openedAt', '', 'closedAt', '', 'reveal', '', 'cohortFirst', '', 'cohortSize', '',
    'cohortServed', '0', 'lobbyFirst', '', 'drawRoot', '', 'drawBeacon', '', 'drawSeed', '',
    'beaconSignature', '', 'paceState', '', 'paceQuota', '', 'run', run}
end

-- Apply the change whose words begin at ARGV[at]. Return the reply and the index of the next change.
local function upsert(key, at)
  local version, policy_words = ARGV[at + 4], tonumber(ARGV[at + 7])
  local next = at + 8 + policy_words
  local stored_version, removed, tail, revision, joined =
    unpack(redis.call('HMGET', key, 'version', 'removed', 'tail', 'revision', 'joined'))
  local old_enabled, old_stock, control_version =
    unpack(redis.call('HMGET', key, 'enabled', 'stock', 'controlVersion'))
  if stored_version and version ~= '' and not is_newer(version, stored_version) then
    return answer_items == '1' and {'stale'} or 'stale', next
  end

  local creates = not stored_version or removed == '1'
  local words = {'id', ARGV[at], 'name', ARGV[at + 1], 'stock', ARGV[at + 2], 'enabled', ARGV[at + 3],
    'revision', format_number(tonumber(revision or '0') + 1), 'updatedAt', format_number(now)}
  if version ~= '' then append(words, {'version', version}, 1, 2)
  elseif not stored_version then append(words, {'version', '0'}, 1, 2) end
  if ARGV[at + 5] ~= '' then
    append(words, {'readOffset', ARGV[at + 5], 'readAt', ARGV[at + 6]}, 1, 4)
  end
  if creates then
    append(words, {'removed', '0', 'createdAt', format_number(now)}, 1, 4)
    local line = new_line_fields(tail, joined)
    append(words, line, 1, #line)
    if not stored_version then append(words, COUNTERS, 1, #COUNTERS) end
    if policy_words == 0 then append(words, ARGV, WORDS, defaults_to) end
    redis.call('SADD', ITEMS, ARGV[at])
    -- These words begin with the opening's own field. The leader must open the line although it is empty.
    if policy_words > 0 and ARGV[next - kept_words + 1] ~= '' then redis.call('SADD', ACTIVE, ARGV[at]) end
  end
  append(words, ARGV, at + 8, creates and next - 1 or math.max(next - 1 - kept_words, at + 7))
  redis.call('HSET', key, unpack(words))
  -- A product service publishes its changes itself. Those that open or close the line change what is restored.
  local enabled, stock = ARGV[at + 3], ARGV[at + 2]
  local is_switched = enabled ~= old_enabled or (stock == '0') ~= (old_stock == '0')
  if version == '' then
    bump_control(key, ARGV[at], now)
  elseif version == '0' then
    -- An item that is created at the start of a process: any other record of its settings is newer.
    bump_control(key, ARGV[at], 0)
  elseif control_version and (creates or is_switched) then
    bump_control(key, ARGV[at], now)
  end
  local reply = creates and 'created' or 'updated'
  if answer_items == '1' then return {reply, redis.call('HGETALL', key)}, next end
  return reply, next
end

-- Settings that the store lost must be restored first: an item without them would admit with the default policy.
if needs_log ~= '' and redis.call('HGET', REPLAYS, needs_log) ~= 'read:' .. run_id() then
  local held = {}
  for i = ITEM_KEYS, #KEYS do held[#held + 1] = 'held' end
  return held
end

-- A change may reduce the stock or disable an item, which must work at maxmemory.
allow_oom(ITEMS)
check_generation(GENERATION, generation, new_id, now)
local replies, at = {}, defaults_to + 1
for key = ITEM_KEYS, #KEYS do
  replies[#replies + 1], at = upsert(KEYS[key], at)
end
return replies
