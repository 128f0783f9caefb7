-- Add signals of tickets of an item, and count each ticket once per signal.
-- KEYS: SIGNALS
-- ARGV: now (int, ms) · retention (int, ms) · max_tickets (int) · tickets.. (lane:number, bits, …)
-- Reply: none
-- Atomic: tickets and counts are written together.
local NAMES = {'source', 'headers', 'earlyPolls', 'noPage', 'honeypot'}
local OTHER_FIELDS = 8
local HONEYPOT = 5

local ends_at = tonumber(redis.call('HGET', SIGNALS, 'endsAt') or '0')
if ends_at <= now then redis.call('DEL', SIGNALS) end

-- Return which signals these bits are, how many, and whether a ticket with them looks automated.
local function read_bits(bits)
  local has, count = {}, 0
  for i = 1, #NAMES do
    has[i] = math.floor(bits / 2 ^ (i - 1)) % 2 == 1
    if has[i] then count = count + 1 end
  end
  return has, has[HONEYPOT] or count >= 2
end

local added = {}
local function count(name) added[name] = (added[name] or 0) + 1 end

redis.call('HSET', SIGNALS, 'endsAt', format_number(now + retention))
-- Fields exist from the first call on, so that the number of tickets follows from the number of fields.
for i = 1, #NAMES do redis.call('HINCRBY', SIGNALS, NAMES[i], 0) end
for _, name in ipairs({'automated', 'uncounted'}) do redis.call('HINCRBY', SIGNALS, name, 0) end
local free = max_tickets - (redis.call('HLEN', SIGNALS) - OTHER_FIELDS)
for i = TICKETS, #ARGV, 2 do
  local known = redis.call('HGET', SIGNALS, ARGV[i])
  if not known and free <= 0 then
    count('uncounted')
  else
    if not known then free = free - 1 end
    local before, was_automated = read_bits(tonumber(known or '0'))
    local more = read_bits(tonumber(ARGV[i + 1]))
    local bits = 0
    for j = 1, #NAMES do
      if before[j] or more[j] then bits = bits + 2 ^ (j - 1) end
      if more[j] and not before[j] then count(NAMES[j]) end
    end
    local _, is_automated = read_bits(bits)
    if is_automated and not was_automated then count('automated') end
    redis.call('HSET', SIGNALS, ARGV[i], format_number(bits))
  end
end
for name, tickets in pairs(added) do redis.call('HINCRBY', SIGNALS, name, tickets) end
redis.call('PEXPIRE', SIGNALS, format_number(retention))
