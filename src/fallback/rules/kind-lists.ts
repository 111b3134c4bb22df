// Data: the names of providers in other programs. The tests of interop/ compare them with the programs.

/** The providers of LiteLLM 1.106.2 (`litellm.provider_list`), which stand before a model's name. */
export const litellmKinds: ReadonlySet<string> = new Set(
  'a2a a2a_agent ai21 ai21_chat aiml aiohttp_openai amazon_nova anthropic anthropic_text apertis assemblyai auto_router aws_polly aws_textract azure azure_ai azure_speech azure_text baseten bedrock bedrock_mantle black_forest_labs bytez cerebras charity_engine chatgpt chutes clarifai cloudflare codestral cognition cohere cohere_chat cometapi compactifai cortecs cursor custom custom_openai darkbloom dashscope databricks datarobot deepgram deepinfra deepseek docker_model_runner dotprompt edenai elevenlabs empower fal_ai featherless_ai fireworks_ai friendliai galadriel gdc gemini gigachat github github_copilot gradient_ai groq helicone heroku hosted_vllm huggingface humanloop hyperbolic inception infinity jina_ai lambda_ai langflow langfuse langgraph lemonade libertai litellm_agent litellm_proxy llamafile lm_studio manus maritalk meta meta_llama milvus minimax mistral modelscope mongodb moonshot morph nadir nano-gpt nebius neosantara nlp_cloud novita nscale nvidia_nim nvidia_riva oci ollama ollama_chat oobabooga openai openai_like openrouter ovhcloud parasail perplexity petals pg_vector pinstripes poe predibase prism publicai qwen_ai_platform qwencloud ragflow recraft reducto reka replicate runwayml s3_vectors sagemaker sagemaker_chat sagemaker_nova sail sambanova sap scaleway scx-ai snowflake soniox stability strands_decider synthetic tencent tensormesh text-completion-codestral text-completion-inception text-completion-openai together_ai topaz transcribe triton typesafe v0 valkey vercel_ai_gateway vertex_ai vertex_ai_beta vllm volcengine voyage wandb watsonx watsonx_text xai xiaomi_mimo xinference zai'.split(
    ' ',
  ),
);

/** The providers of Portkey's gateway 1.15.2 (the accepted values of `provider`). */
export const portkeyKinds: ReadonlySet<string> = new Set(
  '302ai lemonfox-ai ai21 aibadgr anthropic anyscale azure-ai azure-openai bedrock bytez cerebras cohere cometapi cortex dashscope deepbricks deepinfra deepseek featherless-ai fireworks-ai github google groq huggingface hyperbolic inference-net iointelligence jina kluster-ai krutrim lambda lepton lingyi matterai meshy milvus mistral-ai modal monsterapi moonshot ncompass nebius nextbit nomic novita-ai nscale ollama openai openrouter oracle ovhcloud palm perplexity-ai portkey predibase qdrant recraft-ai reka-ai replicate sagemaker sambanova segmind siliconflow stability-ai together-ai tripo3d triton upstage vertex-ai voyage workers-ai x-ai z-ai zhipu'.split(
    ' ',
  ),
);
