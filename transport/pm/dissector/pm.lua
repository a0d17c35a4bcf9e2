-- SPDX-License-Identifier: Apache-2.0
-- Wireshark's eyes for PM on UDP: docs/protocol/9-pm.md.  Keys, with which it checks every packet's tag, come from the file
-- that the preference pm.keys names: a trace written with --keys (the same one, as a rule), or the lines of its key log.
--   tshark -X lua_script:pm.lua -o pm.keys:F.pcapng -r F.pcapng -O pm

local pm = Proto("pm", "PM on UDP")
local KINDS = {[1] = "HELLO", [2] = "CHALLENGE", [3] = "ANSWER", [4] = "WELCOME", [5] = "DATA",
               [6] = "CLASSIC DATA", [7] = "CLASSIC ACK", [8] = "CLASSIC NACK"}
local FRAMES = {[1] = "ACK", [2] = "CREDIT", [3] = "DATA", [4] = "GRANT", [5] = "WANT", [6] = "PING", [7] = "PAD",
                [8] = "CLOSE", [9] = "FLOOR", [10] = "GANG"}
local REASONS = {[0] = "none", [1] = "silent", [2] = "closed", [3] = "left", [4] = "restarted", [5] = "violation", [6] = "refused"}
local HEADER, TAG, CIPHER_TAG, GREETING = 18, 8, 16, 64

local f = pm.fields
f.version = ProtoField.uint8("pm.version", "Version", base.DEC, nil, 0xf0)
f.kind = ProtoField.uint8("pm.kind", "Kind", base.DEC, KINDS, 0x0f)
f.payload_tag = ProtoField.bool("pm.payload_authenticated", "Payload authenticated", 8, nil, 1)
f.encrypted = ProtoField.bool("pm.encrypted", "Encrypted", 8, nil, 2)
f.no_hurry = ProtoField.bool("pm.no_hurry", "Acknowledgement has time", 8, nil, 4)
f.after_probe = ProtoField.bool("pm.after_probe", "The number before is a path MTU probe", 8, nil, 8)
f.context = ProtoField.uint16("pm.context", "Context")
f.source = ProtoField.uint16("pm.source", "Source node")
f.destination = ProtoField.uint16("pm.destination", "Destination node")
f.number = ProtoField.uint64("pm.number", "Packet number")
f.control = ProtoField.uint16("pm.control_length", "Length of the control part")
f.payload = ProtoField.bytes("pm.payload", "Payload")
f.tag = ProtoField.bytes("pm.tag", "Tag")
f.tag_good = ProtoField.bool("pm.tag.good", "Genuine")
f.incarnation = ProtoField.uint64("pm.incarnation", "Incarnation", base.HEX)
f.other = ProtoField.uint64("pm.other_incarnation", "Incarnation of the destination", base.HEX)
f.nonce = ProtoField.uint64("pm.nonce", "Nonce", base.HEX)
f.cookie = ProtoField.uint64("pm.cookie", "Cookie", base.HEX)
f.credit = ProtoField.uint32("pm.credit", "Byte credit")
f.channels = ProtoField.uint8("pm.channels", "Channels - 1")
f.frame = ProtoField.uint8("pm.frame", "Frame", base.DEC, FRAMES)
f.channel = ProtoField.uint64("pm.channel", "Channel")
f.offset = ProtoField.uint64("pm.offset", "Offset")
f.length = ProtoField.uint64("pm.length", "Length")
f.value = ProtoField.uint64("pm.value", "Value")
f.largest = ProtoField.uint64("pm.ack.largest", "Largest")
f.delay = ProtoField.uint64("pm.ack.delay_us", "Delay, us")
f.ce = ProtoField.uint64("pm.ack.ce", "CE marks")
f.ranges = ProtoField.string("pm.ack.ranges", "Ranges")
f.bytes_limit = ProtoField.uint64("pm.credit.bytes", "Byte limit")
f.messages_limit = ProtoField.uint64("pm.credit.messages", "Message limit")
f.reason = ProtoField.uint64("pm.close.reason", "Reason", base.DEC, nil)
f.wave = ProtoField.uint64("pm.gang.wave", "Wave")
f.asked = ProtoField.uint64("pm.gang.asked", "Asked")
f.joined = ProtoField.uint64("pm.gang.joined", "Joined")
f.reported = ProtoField.uint64("pm.gang.reported", "Reported")
f.waiting = ProtoField.uint64("pm.gang.waiting", "Waiting")
f.gone = ProtoField.uint64("pm.gang.gone", "Gone")
f.follows = ProtoField.uint64("pm.gang.follows", "Follows node")
f.message = ProtoField.bytes("pm.message", "Message")
f.message_length = ProtoField.uint32("pm.message.length", "Message length")
f.classic = ProtoField.uint32("pm.classic.number", "Message number")
f.full = ProtoField.bool("pm.classic.full", "Buffer full")

local bad_tag = ProtoExpert.new("pm.tag.bad", "the tag is wrong", expert.group.CHECKSUM, expert.severity.ERROR)
local broken = ProtoExpert.new("pm.malformed", "the control part does not parse to its end", expert.group.MALFORMED,
                               expert.severity.ERROR)
pm.experts = {bad_tag, broken}
pm.prefs.keys = Pref.string("Keys", "", "A trace written with --keys, or its key log: tags are checked")

-- SipHash-2-4 and NH, on strings ------------------------------------------------------------------------------------------

local function word(text, at)  -- little-endian; zeros behind the end
    local a, b, c, d, e, g, h, i = text:byte(at, at + 7)
    return UInt64.new((a or 0) + (b or 0) * 0x100 + (c or 0) * 0x10000 + (d or 0) * 0x1000000,
                      (e or 0) + (g or 0) * 0x100 + (h or 0) * 0x10000 + (i or 0) * 0x1000000)
end

local function text_of(value)
    local out = {}
    for _, half in ipairs({value:lower(), value:higher()}) do
        for _ = 1, 4 do
            out[#out + 1] = string.char(half % 256)
            half = math.floor(half / 256)
        end
    end
    return table.concat(out)
end

local function siphash(key, text)
    local v0 = key[1]:bxor(UInt64.new(0x70736575, 0x736f6d65))
    local v1 = key[2]:bxor(UInt64.new(0x6e646f6d, 0x646f7261))
    local v2 = key[1]:bxor(UInt64.new(0x6e657261, 0x6c796765))
    local v3 = key[2]:bxor(UInt64.new(0x79746573, 0x74656462))
    local function round()
        v0 = v0 + v1; v1 = v1:rol(13):bxor(v0); v0 = v0:rol(32)
        v2 = v2 + v3; v3 = v3:rol(16):bxor(v2)
        v0 = v0 + v3; v3 = v3:rol(21):bxor(v0)
        v2 = v2 + v1; v1 = v1:rol(17):bxor(v2); v2 = v2:rol(32)
    end
    local function absorb(m)
        v3 = v3:bxor(m)
        round(); round()
        v0 = v0:bxor(m)
    end
    local whole = #text - #text % 8
    for at = 1, whole, 8 do absorb(word(text, at)) end
    absorb(word(text:sub(whole + 1), 1):bor(UInt64.new(0, #text % 256 * 0x1000000)))
    v2 = v2:bxor(UInt64.new(0xff, 0))
    round(); round(); round(); round()
    return v0:bxor(v1):bxor(v2):bxor(v3)
end

local LOW = UInt64.new(0xffffffff, 0)

local function product(a, b)  -- low and high half
    local al, ah, bl, bh = a:band(LOW), a:rshift(32), b:band(LOW), b:rshift(32)
    local ll, lh, hl, hh = al * bl, al * bh, ah * bl, ah * bh
    local middle = ll:rshift(32) + lh:band(LOW) + hl:band(LOW)
    return middle:lshift(32):bor(ll:band(LOW)), hh + lh:rshift(32) + hl:rshift(32) + middle:rshift(32)
end

local function digest(key, payload)
    local out = {}
    for block = 1, #payload, 1024 do
        local low, high = UInt64.new(0, 0), UInt64.new(0, 0)
        for at = 0, math.min(1024, #payload - block + 1) - 1, 16 do
            local k = at / 8
            local l, h = product(word(payload, block + at) + key[k + 1], word(payload, block + at + 8) + key[k + 2])
            low = low + l
            high = high + h
            if low < l then high = high + UInt64.new(1, 0) end
        end
        out[#out + 1] = text_of(low) .. text_of(high)
    end
    return table.concat(out) .. text_of(UInt64.new(#payload, 0))
end

-- Keys --------------------------------------------------------------------------------------------------------------------

local keys = {path = "", payload = {}, greeting = {}, session = {}}

local function words_of(hex)
    local raw, out = hex:gsub("%x%x", function(byte) return string.char(tonumber(byte, 16)) end), {}
    for at = 1, #raw, 8 do out[#out + 1] = word(raw, at) end
    return out
end

local function take_keys(text)
    for line in text:gmatch("[^\n]+") do
        local words = {}
        for one in line:gmatch("%S+") do words[#words + 1] = one end
        if words[1] == "PM_PAYLOAD" and #words == 3 then
            keys.payload[words[2]] = words_of(words[3])
        elseif (words[1] == "PM_GREETING" or words[1] == "PM_SESSION") and #words == 5 then
            local all = words[1] == "PM_SESSION" and keys.session or keys.greeting
            local who = words[2] .. "/" .. words[3] .. "/" .. words[4]
            all[who] = all[who] or {}
            table.insert(all[who], 1, words_of(words[5]))  -- the newest first
        end
    end
end

local function u32(text, at)
    local a, b, c, d = text:byte(at, at + 3)
    return a + b * 0x100 + c * 0x10000 + d * 0x1000000
end

-- The Decryption Secrets Blocks of a pcapng file, or a key log alone.
local function read_keys(path)
    keys = {path = path, payload = {}, greeting = {}, session = {}}
    local file = path ~= "" and io.open(path, "rb")
    if not file then return end
    local head = file:read(8)
    if head and head:sub(1, 4) ~= "\n\r\r\n" then
        take_keys(head .. (file:read("*a") or ""))
    end
    while head and #head == 8 do
        local kind, size = u32(head, 1), u32(head, 5)
        if size < 12 then break end
        if kind == 10 then
            local body = file:read(size - 8)
            if body and #body == size - 8 and u32(body, 1) == 0x504d4b4c then take_keys(body:sub(9, 8 + u32(body, 5))) end
        else
            file:seek("cur", size - 8)
        end
        head = file:read(8)
    end
    file:close()
end

function pm.prefs_changed() read_keys(pm.prefs.keys) end

-- nil: there is no key to tell.
local function is_genuine(tvb, packet)
    local who = packet.context .. "/" .. packet.source .. "/" .. packet.destination
    local candidates = (packet.kind == 5 and keys.session or keys.greeting)[who]
    local payload_key = keys.payload[tostring(packet.context)]
    if not candidates or packet.encrypted or packet.kind > 5 or (packet.payload_tag and not payload_key) then return nil end
    local text = tvb:raw(0, HEADER + packet.control)
    if packet.payload_tag then text = text .. digest(payload_key, tvb:raw(HEADER + packet.control, packet.payload)) end
    local tag = word(tvb:raw(tvb:len() - TAG, TAG), 1)
    for _, key in ipairs(candidates) do
        if siphash(key, text) == tag then return true end
    end
    return false
end

-- Messages in streams -----------------------------------------------------------------------------------------------------

local streams = {}  -- of each the offset at which the next message begins, where that is known
local found = {}    -- of each frame and slice, the messages that begin in it: offset in the slice, length

function pm.init() streams, found = {}, {} end

local function padded(length) return 8 + length + (8 - length % 8) % 8 end

-- The heads in `slice` from `at` on, and where the next one is; nil: that is no head.
local function heads(slice, at)
    local out = {}
    while at + 8 <= #slice do
        if u32(slice, at + 5) > 1 or u32(slice, at + 1) > 0x40000000 then return nil end
        out[#out + 1] = {at, u32(slice, at + 1)}
        at = at + padded(u32(slice, at + 1))
    end
    return out, at
end

local function messages(pinfo, who, index, offset, slice)
    local place = pinfo.number .. "/" .. index
    if pinfo.visited then return found[place] or {} end
    local known = offset == 0 and 0 or streams[who]
    local out, next_head
    if known and known >= offset then
        if known >= offset + #slice then return {} end
        out, next_head = heads(slice, known - offset)
    elseif not known then  -- a trace that begins late: a chain of heads that ends with the slice is one
        out, next_head = heads(slice, 0)
        if next_head ~= #slice then out = nil end
    else
        return {}  -- sent again
    end
    streams[who] = out and offset + next_head
    -- A head that two packets share is seen by neither.
    if out and next_head < #slice then streams[who] = nil end
    found[place] = out or {}
    return found[place]
end

-- Packets -----------------------------------------------------------------------------------------------------------------

local function wide(value) return UInt64.new(value % 0x100000000, math.floor(value / 0x100000000)) end

local Reader = {}
Reader.__index = Reader

-- A variable-length integer as in QUIC: its value and where it is; nil at the end.
function Reader:next()
    if self.at >= self.stop then return nil end
    local first = self.tvb:range(self.at, 1):uint()
    local size = 2 ^ math.floor(first / 64)
    if self.at + size > self.stop then return nil end
    local value = first % 64
    for i = 1, size - 1 do value = value * 256 + self.tvb:range(self.at + i, 1):uint() end
    local range = self.tvb:range(self.at, size)
    self.at = self.at + size
    return value, range
end

-- Adds the fields in order; their values, or nil.
function Reader:fields(tree, names)
    local values = {}
    for i, field in ipairs(names) do
        local value, range = self:next()
        if not value then return nil end
        tree:add(field, range, wide(value))
        values[i] = value
    end
    return values
end

local function ack(reader, tree)
    local first = reader:fields(tree, {f.largest, f.delay, f.ce})
    local count = first and reader:next()
    local length = count and reader:next()
    if not length or count < 1 or count > 32 or length > first[1] then return nil end
    local low, text = first[1] - length, {}
    text[1] = string.format("%.0f-%.0f", low, first[1])
    for i = 2, count do
        local gap = reader:next()
        length = gap and reader:next()
        if not length or low - 2 - gap - length < 0 then return nil end
        local high = low - 2 - gap
        low = high - length
        text[i] = string.format("%.0f-%.0f", low, high)
    end
    tree:add(f.ranges, table.concat(text, " "))
    return " " .. table.concat(text, " ")
end

local SIMPLE = {
    [2] = function(reader, tree)
        local v = reader:fields(tree, {f.channel, f.bytes_limit, f.messages_limit})
        return v and string.format(" %d", v[1])
    end,
    [4] = function(reader, tree) return reader:fields(tree, {f.value}) and "" end,
    [5] = function(reader, tree) return reader:fields(tree, {f.value}) and "" end,
    [6] = function() return "" end,
    [8] = function(reader, tree)
        local v = reader:fields(tree, {f.reason})
        return v and " " .. (REASONS[v[1]] or v[1])
    end,
    [9] = function(reader, tree) return reader:fields(tree, {f.value}) and "" end,
    [10] = function(reader, tree)
        local v = reader:fields(tree, {f.wave, f.asked, f.joined, f.reported, f.waiting, f.gone, f.follows})
        return v and string.format(" %.0f", v[1])
    end,
}

-- The frames of a DATA packet; false if they do not parse to the end.  `tree` may be a silent one.
local function frames(tvb, pinfo, tree, packet, info)
    local reader = setmetatable({tvb = tvb, at = HEADER, stop = HEADER + packet.control}, Reader)
    local payload, slices = HEADER + packet.control, 0
    local payload_end = payload + packet.payload
    while reader.at < reader.stop do
        local begin = reader.at
        local kind = tvb:range(begin, 1):uint()
        if not FRAMES[kind] then return false end
        local branch = tree:add(f.frame, tvb:range(begin, 1))
        reader.at = begin + 1
        local said
        if kind == 1 then
            said = ack(reader, branch)
        elseif kind == 3 or kind == 7 then
            local v = reader:fields(branch, kind == 3 and {f.channel, f.offset, f.length} or {f.length})
            local length = v and v[#v]
            if not length or payload + length > payload_end then return false end
            if kind == 3 then
                slices = slices + 1
                said = string.format(" %d@%.0f+%.0f", v[1], v[2], length)
                local there = math.min(length, math.max(tvb:len() - payload, 0))
                if there > 0 then
                    local slice = tvb:range(payload, there)
                    local part = branch:add(f.payload, slice)
                    local who = packet.context .. "/" .. packet.source .. "/" .. packet.destination .. "/" .. v[1]
                    for _, one in ipairs(messages(pinfo, who, slices, v[2], tvb:raw(payload, there))) do
                        part:add_le(f.message_length, slice:range(one[1], 4))
                        local size = math.min(one[2], there - one[1] - 8)
                        if size > 0 then part:add(f.message, slice:range(one[1] + 8, size)) end
                    end
                end
            else
                said = ""
            end
            payload = payload + length
        else
            said = SIMPLE[kind](reader, branch)
        end
        if not said then return false end
        branch:set_len(reader.at - begin)
        branch:append_text(said)
        info[#info + 1] = FRAMES[kind] .. said
    end
    return payload == payload_end
end

local function greeting(tvb, tree, kind)
    local at = HEADER
    local function add(field, size)
        tree:add_le(field, tvb:range(at, size))
        at = at + size
    end
    if kind == 1 or kind == 3 then add(f.incarnation, 8) end
    add(f.nonce, 8)
    if kind == 2 or kind == 3 then add(f.cookie, 8) end
    if kind == 2 or kind == 4 then add(f.incarnation, 8) end
    if kind == 3 then add(f.other, 8) end
    if kind == 2 or kind == 3 then
        add(f.credit, 4)
        add(f.channels, 1)
    end
end

-- The header, if this can be a PM packet.
local function header(tvb)
    local size = tvb:reported_len()
    if tvb:len() < HEADER + TAG or size > 65507 then return nil end
    local first, flags = tvb:range(0, 1):uint(), tvb:range(1, 1):uint()
    local packet = {kind = first % 16, payload_tag = flags % 2 == 1, encrypted = math.floor(flags / 2) % 2 == 1,
                    context = tvb:range(2, 2):le_uint(), source = tvb:range(4, 2):le_uint(),
                    destination = tvb:range(6, 2):le_uint(), control = tvb:range(16, 2):le_uint()}
    packet.tag = packet.encrypted and CIPHER_TAG or TAG
    packet.payload = size - HEADER - packet.control - packet.tag
    local fits = math.floor(first / 16) == 1 and KINDS[packet.kind] and flags < 16 and packet.payload >= 0 and
                 packet.source ~= packet.destination and tvb:range(15, 1):uint() < 64 and HEADER + packet.control <= tvb:len()
    if not fits or (packet.encrypted and packet.kind ~= 5) then return nil end
    if packet.kind < 5 and (packet.control ~= GREETING or packet.payload ~= 0) then return nil end
    if packet.kind > 5 and packet.control ~= 5 then return nil end
    return packet
end

function pm.dissector(tvb, pinfo, root)
    local packet = header(tvb)
    if not packet then return 0 end
    pinfo.cols.protocol = "PM"
    local tree = root:add(pm, tvb())
    tree:add(f.version, tvb(0, 1))
    tree:add(f.kind, tvb(0, 1))
    tree:add(f.payload_tag, tvb(1, 1))
    tree:add(f.encrypted, tvb(1, 1))
    tree:add(f.no_hurry, tvb(1, 1))
    tree:add(f.after_probe, tvb(1, 1))
    tree:add_le(f.context, tvb(2, 2))
    tree:add_le(f.source, tvb(4, 2))
    tree:add_le(f.destination, tvb(6, 2))
    tree:add_le(f.number, tvb(8, 8))
    tree:add_le(f.control, tvb(16, 2))

    local info, parsed = {}, true
    if packet.encrypted then
        info[1] = "encrypted"
    elseif packet.kind < 5 then
        greeting(tvb, tree, packet.kind)
    elseif packet.kind == 5 then
        parsed = frames(tvb, pinfo, tree, packet, info)
    else
        tree:add_le(f.classic, tvb(18, 4))
        tree:add(f.full, tvb(22, 1))
    end
    if not parsed then tree:add_proto_expert_info(broken) end

    if tvb:len() == tvb:reported_len() then
        local tag = tree:add(f.tag, tvb(tvb:len() - packet.tag, packet.tag))
        local genuine = is_genuine(tvb, packet)
        if genuine ~= nil then tag:add(f.tag_good, genuine):set_generated() end
        if genuine == false then tag:add_proto_expert_info(bad_tag) end
    end
    pinfo.cols.info = string.format("%d:%d > %d %s %s%s%s", packet.context, packet.source, packet.destination,
                                    KINDS[packet.kind], tostring(tvb(8, 8):le_uint64()), #info > 0 and "  " or "",
                                    table.concat(info, ", "))
    tree:append_text(string.format(", context %d, %d > %d, %s", packet.context, packet.source, packet.destination,
                                   KINDS[packet.kind]))
    return tvb:len()
end

-- Any port: our packets are told by their header.  Other protocols' are rarely taken for one.
pm:register_heuristic("udp", function(tvb, pinfo, root)
    if not header(tvb) then return false end
    pm.dissector(tvb, pinfo, root)
    return true
end)
DissectorTable.get("udp.port"):add_for_decode_as(pm)
