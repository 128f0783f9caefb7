-- Add counts of visits to a minute and an hour of a line.
-- KEYS: VISIT_MINUTES · VISIT_HOURS
-- ARGV: minute (of the hour) · hour (of the day) · max_labels (int) · minutes_ttl_ms · hours_ttl_ms ·
--       counts.. (label as two bytes, count, …)
-- Reply: 'OK'
-- Atomic: counts of concurrent pods are added, none is lost.

-- Return the labels of a stored text in order, and their counts. A count has seven bits per byte, lowest first.
local function parse_counts(text)
  local labels, totals, at = {}, {}, 1
  while at < #text do
    local label = string.sub(text, at, at + 1)
    local total, factor, byte = 0, 1, 0
    at = at + 2
    repeat
      byte = string.byte(text, at)
      total, factor, at = total + (byte % 128) * factor, factor * 128, at + 1
    until byte < 128
    labels[#labels + 1], totals[label] = label, total
  end
  return labels, totals
end

local function format_counts(labels, totals)
  local parts = {}
  for _, label in ipairs(labels) do
    local total = totals[label]
    parts[#parts + 1] = label
    while total >= 128 do
      parts[#parts + 1] = string.char(total % 128 + 128)
      total = math.floor(total / 128)
    end
    parts[#parts + 1] = string.char(total)
  end
  return table.concat(parts)
end

local function add_counts(key, field)
  local labels, totals = parse_counts(redis.call('HGET', key, field) or '')
  for i = COUNTS, #ARGV, 2 do
    local label = ARGV[i]
    local high = string.byte(label)
    local dimension = math.floor(high / 16)
    if not totals[label] and #labels >= max_labels and dimension >= FIRST_OPEN and dimension <= LAST_OPEN then
      -- The label of all values without one of their own.
      label = string.char(high - high % 16 + 15, 255)
    end
    if not totals[label] then labels[#labels + 1] = label end
    totals[label] = (totals[label] or 0) + tonumber(ARGV[i + 1])
  end
  redis.call('HSET', key, field, format_counts(labels, totals))
end

-- Not allowed at maxmemory: the memory is for tickets.
add_counts(VISIT_MINUTES, minute)
redis.call('PEXPIRE', VISIT_MINUTES, minutes_ttl_ms)
add_counts(VISIT_HOURS, hour)
redis.call('PEXPIRE', VISIT_HOURS, hours_ttl_ms)
return 'OK'
