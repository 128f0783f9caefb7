-- Liveness: which numbers were seen when. A slice is the hash of one span of SLICE_MS: page → bits, one bit
-- per number. The keys from KEYS[SLICES] on are consecutive slices; scripts that mark get the current one.

-- Extend the TTL of the current slice to the longest absence that the policy allows and two slices. A fixed
-- TTL of 1 h would make slices a quarter of a line's memory. The TTL is never shorter than the default policy
-- needs, so that the slices still exist when the policy is changed to a longer absence.
local function extend_slice_ttl()
  local grace, missed_keep = unpack(redis.call('HMGET', ITEM, 'graceSeconds', 'missedKeepSeconds'))
  local absence_ms = (tonumber(grace or '0') + tonumber(missed_keep or '0')) * 1000
  local ttl = math.max(absence_ms, DEFAULT_ABSENCE_LIMIT_MS) + 2 * SLICE_MS
  redis.call('PEXPIRE', KEYS[SLICES], format_number(ttl))
end

-- Return the field of a page of the selected lane. All lanes of an item share the slices.
local function page_field(page)
  return LANE == 0 and format_number(page) or LANE .. ':' .. format_number(page)
end

-- Return page, index of the byte in the page (from 1), and mask of the bit of a number.
local function bit_index(number)
  local page = math.floor(number / PAGE_NUMBERS)
  local offset = number - page * PAGE_NUMBERS
  return page, math.floor(offset / 8) + 1, 2 ^ (offset % 8)
end

-- Mark one number as seen in the current slice.
local function mark_seen(number)
  local page, at, mask = bit_index(number)
  local bits = redis.call('HGET', KEYS[SLICES], page_field(page)) or ''
  if #bits < at then bits = bits .. string.rep('\0', at - #bits) end
  local byte = bit.bor(string.byte(bits, at), mask)
  bits = string.sub(bits, 1, at - 1) .. string.char(byte) .. string.sub(bits, at + 1)
  allow_oom(ITEM)
  redis.call('HSET', KEYS[SLICES], page_field(page), bits)
  extend_slice_ttl()
end

-- Return the slice of the time `seconds` before now.
local function oldest_slice(now, seconds)
  return math.max(0, math.floor(math.max(0, now - seconds * 1000) / SLICE_MS))
end

-- Return the first number issued in slice `oldest` or later; it and all higher ones count as seen.
local function first_recent_number(oldest)
  return tonumber(redis.call('ZRANGEBYSCORE', SLICE_STARTS, oldest, '+inf', 'LIMIT', 0, 1)[1]) or math.huge
end

-- Read liveness since slice `oldest`; KEYS[SLICES] is the slice `first_slice`. Return two functions and a
-- number: is_present(number); are_all_present(first, last), which may return false for ranges over a page
-- border; and the number from which on all count as seen.
local function liveness_since(oldest, first_slice)
  local recent, pages = first_recent_number(oldest), {}

  local function slices_of(page)
    if not pages[page] then
      local slices = {}
      for key = SLICES + oldest - first_slice, #KEYS do
        slices[#slices + 1] = redis.call('HGET', KEYS[key], page_field(page)) or nil
      end
      pages[page] = slices
    end
    return pages[page]
  end

  local function is_present(number)
    if number >= recent then return true end
    local page, at, mask = bit_index(number)
    for _, bits in ipairs(slices_of(page)) do
      local byte = string.byte(bits, at)
      if byte and bit.band(byte, mask) ~= 0 then return true end
    end
    return false
  end

  local function are_all_present(first, last)
    if first >= recent then return true end
    local page = math.floor(first / PAGE_NUMBERS)
    if math.floor(last / PAGE_NUMBERS) ~= page then return false end
    local slices, from, to = slices_of(page), first % PAGE_NUMBERS, last % PAGE_NUMBERS
    local first_at, last_at = math.floor(from / 8), math.floor(to / 8)
    for at = first_at, last_at do
      -- Bits before the first and after the last number count as set.
      local byte = at == first_at and 2 ^ (from % 8) - 1 or 0
      if at == last_at then byte = bit.bor(byte, 256 - 2 ^ (to % 8 + 1)) end
      for _, bits in ipairs(slices) do byte = bit.bor(byte, string.byte(bits, at + 1) or 0) end
      if byte ~= 255 then return false end
    end
    return true
  end

  return is_present, are_all_present, recent
end
