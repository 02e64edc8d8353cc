"""Referees: upstreams that refuse what a real provider refuses, and answer in its form.

Read the files in this order:

    refusal        a refused request: status and body
    families       what a model accepts, from `facts/*.json`
    ledger         what the referee issued: signatures of reasoning and ids
    schema         JSON schemas in the subsets that providers accept
    anthropic, anthropic_turns        Messages
    openai, openai_chat, chat_turns   Chat Completions of OpenAI
    responses                         the Responses API
    mistral, closed_chat, reasoning_chat   Chat Completions of other vendors
    gemini, gemini_turns              generateContent
    converse                          Converse of Amazon Bedrock
    plan           what a referee answers
    *_answers      answers in each form, whole and streamed
    judge          one request: refused, or answered
    upstream       the server
    connected      a gateway whose providers are referees

The facts and the rules come from vendors' documentation, SDK types and quoted answers. They do not come from the
catalogue of fairlead, whose mistakes they have to find.
"""
