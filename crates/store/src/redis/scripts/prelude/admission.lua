-- Whether a line may admit, and how many: quota, capacity, progress.

-- Return the global quota of a tick: the partition's copy, or `given` if there is none yet.
local function global_quota(given)
  return tonumber(redis.call('HGET', SETTINGS_COPY, 'tokenCountToMove') or given)
end

-- Return the quota of a tick of a line, if the global one is `given` and not 0.
local function line_quota(item, given)
  local limit = tonumber(item.tokensPerTick or '')
  if (item.pace or '') == '' then return limit or given end
  local paced = item.paceQuota
  if (paced or '') == '' then paced = item.paceFirst end
  return math.min(tonumber(paced), limit or math.huge)
end

-- Return whether the line can admit no ticket now, apart from a full outbox.
local function is_stopped(item, now)
  return item.removed ~= '0' or item.enabled ~= '1' or item.stock == '0' or item.paused == '1'
    or phase(item, now) ~= 'open'
    or tonumber(item.recoveringUntil or '0') > now or tonumber(item.behindUntil or '0') > now
    or item.tokensPerTick == '0' or global_quota('1') == 0
end

-- Return how many more tickets may be admitted while `taken` slots are taken.
local function free_capacity(item, taken)
  local free = math.huge
  if item.maxActive and item.maxActive ~= '' then free = tonumber(item.maxActive) - taken end
  if item.admitUpToStock == '1' then free = math.min(free, tonumber(item.stock) - taken) end
  return math.max(free, 0)
end

-- Count tickets that left the front of the line, for the estimate of its speed. The field `moves` holds: when
-- the line began to move (ms), how many tickets left then, when the last ones left (ms), how many left after
-- the beginning.
local function record_progress(tickets, now)
  local bucket = math.floor(now / RATE_BUCKET_MS)
  redis.call('HINCRBY', RATE, format_number(bucket), tickets)
  if redis.call('HLEN', RATE) > RATE_BUCKETS then
    for _, at in ipairs(redis.call('HKEYS', RATE)) do
      if tonumber(at) + RATE_BUCKETS < bucket then redis.call('HDEL', RATE, at) end
    end
  end
  local first_at, first, last_at, later =
    string.match(redis.call('HGET', LINE, 'moves') or '', '^(%d+):(%d+):(%d+):(%d+)$')
  first_at, first, last_at, later = tonumber(first_at), tonumber(first), tonumber(last_at), tonumber(later)
  if not first_at or now < first_at or now - last_at > RATE_BUCKETS * RATE_BUCKET_MS then
    first_at, first, last_at, later = now, tickets, now, 0
  elseif now == first_at then
    first = first + tickets
  else
    last_at, later = math.max(last_at, now), later + tickets
  end
  redis.call('HSET', LINE, 'moves', string.format('%.0f:%.0f:%.0f:%.0f', first_at, first, last_at, later))
end
