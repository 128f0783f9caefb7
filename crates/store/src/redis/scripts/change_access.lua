-- Change the block and allow list, and record what changed.
-- KEYS: ACCESS_RULES · ACCESS_SETTINGS · ACCESS_CHANGES
-- ARGV: now · max_rules (int) · max_events (int) · contact_url ('-' keeps it, '' removes it) ·
--       removals (int) · words.. (id, event for each removal; then id, record, event for each rule to put)
-- Reply: {1, or 0 if there would be too many rules, revision, added, replaced, removed}
-- Atomic: the limit is checked, and rules, events and revision are written together.
local known, size = {}, redis.call('HLEN', ACCESS_RULES)
local removed_ids, records, events = {}, {}, {}
local added, replaced, removed = 0, 0, 0

local function is_known(id)
  if known[id] == nil then known[id] = redis.call('HEXISTS', ACCESS_RULES, id) == 1 end
  return known[id]
end

local puts = WORDS + 2 * removals
for i = WORDS, puts - 1, 2 do
  if is_known(ARGV[i]) then
    known[ARGV[i]] = false
    removed = removed + 1
    removed_ids[removed] = ARGV[i]
    events[#events + 1] = ARGV[i + 1]
  end
end
for i = puts, #ARGV, 3 do
  if is_known(ARGV[i]) then replaced = replaced + 1 else added = added + 1 end
  known[ARGV[i]] = true
  records[#records + 1], records[#records + 2] = ARGV[i], ARGV[i + 1]
  events[#events + 1] = ARGV[i + 2]
end

local revision = tonumber(redis.call('HGET', ACCESS_SETTINGS, 'revision') or '0')
if added > 0 and size - removed + added > max_rules then return {0, revision, 0, 0, 0} end
if #events == 0 and contact_url == '-' then return {1, revision, 0, 0, 0} end

allow_oom(ACCESS_SETTINGS)
for _, id in ipairs(removed_ids) do redis.call('HDEL', ACCESS_RULES, id) end
for i = 1, #records, 2 do redis.call('HSET', ACCESS_RULES, records[i], records[i + 1]) end
for _, event in ipairs(events) do redis.call('LPUSH', ACCESS_CHANGES, event) end
redis.call('LTRIM', ACCESS_CHANGES, 0, max_events - 1)
if contact_url ~= '-' then redis.call('HSET', ACCESS_SETTINGS, 'contactUrl', contact_url) end
revision = math.max(tonumber(now), revision + 1)
redis.call('HSET', ACCESS_SETTINGS, 'revision', format_number(revision))
return {1, revision, added, replaced, removed}
